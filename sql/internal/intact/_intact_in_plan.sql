-- Whether the source of an index is known to be as it was recorded: asked once, when a statement of a search is planned,
-- and so for nothing by every search after it. IMMUTABLE means that much only: PostgreSQL plans the statement anew after
-- every ALTER of the table, whose oid must stand there as a constant, not in a variable.
-- source: as the function of the search was made for; another one in a restored database.
-- False says nothing: then every search looks for itself. The tables of the catalog are read as of the snapshot, so a
-- transaction that keeps its snapshot is no judge; the cache, which is up to date, is asked as well for names, and whether the
-- table was rewritten, as a change of type does.
CREATE OR REPLACE FUNCTION foh._intact_in_plan(index int, source regclass) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN current_setting('transaction_isolation') LIKE 'read %' AND EXISTS (
        SELECT FROM foh.index i JOIN pg_class c ON c.oid = i.source
        WHERE i.id = _intact_in_plan.index AND i.source = _intact_in_plan.source AND i.source_oid = i.source
          AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = i.source))
          AND EXISTS (SELECT FROM pg_index x WHERE x.indrelid = i.source AND x.indisprimary AND x.indnkeyatts = 1 AND x.indkey[0] = i.key_attnum)
          AND to_regclass(i.source_name) = i.source AND c.relfilenode = coalesce(pg_relation_filenode(i.source), 0)
          AND 2 = (SELECT count(*) FROM pg_attribute a
                   WHERE a.attrelid = i.source
                     AND (a.attnum = i.key_attnum AND a.attname = i.key AND a.atttypid = i.key_type
                          OR a.attnum = i.embedding_attnum AND a.attname = i.embedding AND foh._embedding_type(a.atttypid) = i.embedding_type
                             AND a.atttypmod = i.embedding_typmod)
                     AND (pg_identify_object_as_address('pg_class'::regclass, i.source, a.attnum)).object_names[3] = a.attname::text));
END
$function$;
