-- Whether the tables of the index still look as recorded; null where the index is gone. Called first by every trigger:
-- no ALTER of the application's table may make its writes fail. A table that is not the index's own is refused.
-- Written out for each index, since every statement that writes to the source pays for it.
CREATE OR REPLACE FUNCTION {intact}(relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE{shows_shards}
AS $body$
DECLARE
    ours boolean;
    intact boolean;
BEGIN
    SELECT relation = i.source OR relation = i.labels_from OR pg_partition_root(relation) IN (i.source, i.labels_from),
           {columns_intact}
    INTO ours, intact
    FROM foh.index i WHERE i.id = {id};
    IF FOUND AND ours IS NOT TRUE THEN
        RAISE EXCEPTION 'foh: % is not a table of index %', relation::regclass, quote_literal({name})
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'The triggers of an index belong on the table it was created for.';
    END IF;
    RETURN intact;
END
$body$;
