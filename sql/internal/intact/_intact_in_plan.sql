-- Whether the source of an index is known to look as recorded. The answer is computed once, when a statement of a search is
-- planned, and costs the searches after that nothing. The function is IMMUTABLE for this reason alone. It is safe because
-- PostgreSQL plans the statement anew after every ALTER of the table, as long as the oid of the table stands in the statement
-- as a constant and not in a variable.
-- source: the table that the function of the search was made for; in a restored database the table has another oid.
-- True means that the source looks as recorded. False means that this is not known, and each search has to check by itself. The
-- catalog is read as of the snapshot, so a transaction that keeps one snapshot always gets false. Names, and whether the
-- table was rewritten (as a change of type does), are also asked of the system cache, which is up to date.
CREATE OR REPLACE FUNCTION foh._intact_in_plan(index int, source regclass) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN current_setting('transaction_isolation') LIKE 'read %' AND EXISTS (
        SELECT FROM foh.index i JOIN pg_class c ON c.oid = i.source
        WHERE i.id = _intact_in_plan.index AND i.source = _intact_in_plan.source AND i.source_oid = i.source AND foh._source_intact(i)
          AND c.relfilenode = coalesce(pg_relation_filenode(i.source), 0)
          AND 2 = (SELECT count(*) FROM pg_attribute a
                   WHERE a.attrelid = i.source AND a.attnum IN (i.key_attnum, i.embedding_attnum)
                     AND (pg_identify_object_as_address('pg_class'::regclass, i.source, a.attnum)).object_names[3] = a.attname::text));
END
$function$;
