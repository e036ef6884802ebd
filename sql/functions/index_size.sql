-- The bytes that each table of an index takes, its indexes and TOAST included.
CREATE OR REPLACE FUNCTION foh.index_size(name text) RETURNS TABLE (part text, bytes bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.suffix, pg_total_relation_size(c.oid)
    FROM foh._index(name) i CROSS JOIN foh._object_names(i.name) WITH ORDINALITY AS s (suffix, object, at)
    JOIN pg_class c ON c.oid = ANY (foh._tables(i.name)) AND c.relname = s.object
    ORDER BY s.at
$function$;
