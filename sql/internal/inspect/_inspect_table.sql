-- Refuses tables on which triggers would not see every write, each with its reason.
CREATE OR REPLACE FUNCTION foh._inspect_table(relation oid) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    c pg_class;
    refusal text;
BEGIN
    SELECT * INTO c FROM pg_class WHERE oid = relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: there is no table with oid %', relation USING ERRCODE = 'undefined_table';
    END IF;
    refusal := CASE
        WHEN c.relkind = 'f' THEN 'is a foreign table: its rows are written elsewhere, unseen by triggers'
        WHEN c.relkind = 'v' THEN 'is a view: name the table behind it'
        WHEN c.relkind = 'm' THEN 'is a materialized view: a REFRESH fires no triggers'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'is not a table'
        WHEN c.relispartition THEN format('is a partition: create the index on %s, the table it belongs to', foh._qualified(pg_partition_root(c.oid)))
        WHEN c.relpersistence = 't' THEN 'is temporary: an index would outlive it'
        WHEN c.relpersistence = 'u' THEN 'is unlogged: after a crash it is empty and the index is not; ALTER TABLE ... SET LOGGED first'
        WHEN c.relnamespace IN ('foh'::regnamespace, 'pg_catalog'::regnamespace) THEN 'belongs to the system'
        WHEN c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN
            'takes part in table inheritance, where triggers see only a part of the writes; use a partitioned table'
    END;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'foh: % %', foh._qualified(c.oid), refusal USING ERRCODE = 'wrong_object_type';
    END IF;
END
$function$;
