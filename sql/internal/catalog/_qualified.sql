-- A table's name with its schema, quoted, whatever the search path.
CREATE OR REPLACE FUNCTION foh._qualified(relation oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation
$function$;
