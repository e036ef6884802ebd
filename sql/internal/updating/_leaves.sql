-- The partitions of both tables of an index as they are now, each with the number of its file, which TRUNCATE changes: what foh._follow
-- compares with what it saw the last time. Null for a table without partitions, and for a distributed table of Citus, whose rows are not here.
CREATE OR REPLACE FUNCTION foh._leaves(i foh.index) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_object_agg(t.name, CASE WHEN c.relkind = 'p' AND foh._citus_kind(c.oid) IS DISTINCT FROM 'distributed' THEN (
               SELECT jsonb_object_agg(l.oid::text, l.relfilenode::bigint) FROM foh._partitions(c.oid) p JOIN pg_class l ON l.oid = p.oid) END)
    FROM (VALUES ('source', i.source), ('labels', i.labels_from)) AS t (name, relation) LEFT JOIN pg_class c ON c.oid = t.relation
$function$;
