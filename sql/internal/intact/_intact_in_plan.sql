-- Whether the source of an index is known to look as recorded. The answer is computed once, when a statement of a search is
-- planned, and costs the searches after that nothing. The function is IMMUTABLE for this reason alone. It is safe because
-- PostgreSQL plans the statement anew after every ALTER of the table, as long as the oid of the table stands in the statement
-- as a constant and not in a variable.
-- The arguments are what was recorded when the function of the search was made; in a restored database the table has another oid.
-- True means that the source looks as recorded. False means that this is not known, and each search has to check by itself. The
-- catalog is read as of the snapshot, so a transaction that keeps one snapshot always gets false. Names, and whether the
-- table was rewritten (as a change of type does), are also asked of the system cache, which is up to date.
-- The first search of a connection waits for the answer, and what costs is to plan this expression, not to run it. So it asks for
-- less than foh._source_intact does, has no join, reads no table that is not at hand in every new connection, such as
-- pg_inherits, and says the types where PostgreSQL would try all operators of a name.
CREATE OR REPLACE FUNCTION foh._intact_in_plan(source regclass, source_name text, key name, key_attnum int2, key_type oid,
                                               embedding name, embedding_attnum int2, embedding_type text, embedding_typmod int)
RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_variable
BEGIN
    -- coalesce: where the table or a column is gone, the answer is null.
    RETURN coalesce(current_setting('transaction_isolation') LIKE 'read %' AND to_regclass(source_name)::oid = source::oid
           -- relhassubclass may be true for some time after the last child is gone, but is never false while there is one.
           AND (SELECT c.relfilenode = coalesce(pg_relation_filenode(source), 0::oid) AND (c.relkind = 'p' OR NOT c.relhassubclass)
                FROM pg_class c WHERE c.oid = source::oid)
           AND 1 = (SELECT count(*) FILTER (WHERE x.indisprimary AND x.indnkeyatts = 1 AND x.indkey[0] = key_attnum)
                    FROM pg_index x WHERE x.indrelid = source::oid)
           AND 2 = (SELECT count(*) FILTER (
                               WHERE (a.attnum = key_attnum AND a.attname = key AND a.atttypid = key_type
                                      OR a.attnum = embedding_attnum AND a.attname = embedding AND a.atttypmod = embedding_typmod
                                         AND format_type(a.atttypid, NULL) = embedding_type)
                                 AND (pg_identify_object_as_address('pg_class'::regclass, source, a.attnum)).object_names[3] = a.attname::text)
                    FROM pg_attribute a WHERE a.attrelid = source::oid), false);
END
$function$;
