-- Whether the tables of the index still look as recorded; null where the index is gone. Called first by every trigger:
-- no ALTER of the application's table may make its writes fail. A table that is not the index's own is refused.
CREATE OR REPLACE FUNCTION foh._intact(index int, relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $function$
DECLARE
    i foh.index;
BEGIN
    SELECT * INTO i FROM foh.index x WHERE x.id = index;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF relation <> i.source AND relation IS DISTINCT FROM i.labels_from
          AND coalesce(pg_partition_root(relation) NOT IN (i.source, i.labels_from), true) THEN
        RAISE EXCEPTION 'foh: % is not a table of index %', relation::regclass, quote_literal(i.name)
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'The triggers of an index belong on the table it was created for.';
    END IF;
    RETURN to_regclass(i.source_name) IS NOT DISTINCT FROM i.source::oid::regclass
       AND (i.labels_from IS NULL OR to_regclass(i.labels_from_name) IS NOT DISTINCT FROM i.labels_from::oid::regclass)
       AND (SELECT bool_and(c.usable) FROM foh._columns(i) c);
END
$function$;
