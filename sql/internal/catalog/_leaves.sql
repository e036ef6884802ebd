-- A partitioned table and all its partitions, each with the number of its file, which TRUNCATE changes; null for other tables, and
-- for a distributed table of Citus, whose rows are not here.
CREATE OR REPLACE FUNCTION foh._leaves(relation oid) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (SELECT jsonb_object_agg(c.oid::text, c.relfilenode::bigint) FROM foh._partitions(relation) p JOIN pg_class c ON c.oid = p.oid)
    WHERE (SELECT r.relkind FROM pg_class r WHERE r.oid = relation) = 'p' AND foh._citus_kind(relation) IS DISTINCT FROM 'distributed'
$function$;
