-- Why a table cannot have an index: its triggers would not see every write, or it may lose rows unseen. Null where it can.
CREATE OR REPLACE FUNCTION foh._refusal(relation oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN c.relkind = 'f' THEN 'is a foreign table: its rows are written elsewhere, unseen by triggers'
        WHEN c.relkind = 'v' THEN 'is a view: name the table behind it'
        WHEN c.relkind = 'm' THEN 'is a materialized view: a REFRESH fires no triggers'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'is not a table'
        WHEN c.relispartition THEN format('is a partition: create the index on %s, the table it belongs to', foh._qualified(pg_partition_root(c.oid)))
        WHEN c.relpersistence = 't' THEN 'is temporary: an index would outlive it'
        WHEN c.relpersistence = 'u' THEN 'is unlogged: after a crash it is empty and the index is not; ALTER TABLE ... SET LOGGED first'
        WHEN EXISTS (SELECT FROM foh._partitions(c.oid) t JOIN pg_class p ON p.oid = t.oid WHERE p.relpersistence = 'u') THEN
            'has a partition that is unlogged: after a crash it is empty and the index is not; ALTER TABLE ... SET LOGGED first'
        WHEN c.relnamespace IN ('foh'::regnamespace, 'pg_catalog'::regnamespace) THEN 'belongs to the system'
        WHEN c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN
            'takes part in table inheritance, where triggers see only a part of the writes; use a partitioned table'
        ELSE foh._citus_refusal(c.oid)
    END
    FROM pg_class c WHERE c.oid = relation
$function$;
