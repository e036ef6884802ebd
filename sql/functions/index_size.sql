-- The bytes that each table of an index takes, its indexes and TOAST included.
CREATE OR REPLACE FUNCTION foh.index_size(name text) RETURNS TABLE (part text, bytes bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
-- The policies of foh show each role its own rows. A session that has switched row_security off would get errors instead.
SET row_security = on
AS $function$
    SELECT s.suffix, pg_total_relation_size(c.oid)
    FROM foh._index(name) i CROSS JOIN unnest(foh._suffixes()) WITH ORDINALITY AS s (suffix, at)
    JOIN pg_class c ON c.relnamespace = 'foh'::regnamespace AND c.relkind = 'r' AND c.relname = i.name || '_' || s.suffix
         AND c.relname <> 'model_state'
    ORDER BY s.at
$function$;
