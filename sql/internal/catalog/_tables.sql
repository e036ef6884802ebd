-- The tables of an index.
CREATE OR REPLACE FUNCTION foh._tables(name text) RETURNS regclass[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(c.oid::regclass ORDER BY c.relname), '{}')
    FROM foh._object_names(name) o JOIN pg_class c ON c.relnamespace = 'foh'::regnamespace AND c.relname = o.object AND c.relkind = 'r'
$function$;
