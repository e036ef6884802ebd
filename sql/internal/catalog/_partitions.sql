-- A table and all partitions below it, level by level. Unlike pg_partition_tree it takes no lock: see foh._lock_tables.
CREATE OR REPLACE FUNCTION foh._partitions(relation oid) RETURNS TABLE (oid oid, level int)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE p AS (
        SELECT c.oid, 0 AS level FROM pg_class c WHERE c.oid = relation
        UNION ALL
        SELECT c.oid, p.level + 1 FROM p JOIN pg_inherits h ON h.inhparent = p.oid JOIN pg_class c ON c.oid = h.inhrelid WHERE c.relispartition
    )
    SELECT p.oid, p.level FROM p
$function$;
