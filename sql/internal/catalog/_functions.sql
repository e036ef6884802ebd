-- The functions of an index.
CREATE OR REPLACE FUNCTION foh._functions(name text) RETURNS SETOF pg_catalog.pg_proc
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.* FROM foh._object_names(name) o JOIN pg_proc p ON p.pronamespace = 'foh'::regnamespace AND p.proname = o.object
$function$;
