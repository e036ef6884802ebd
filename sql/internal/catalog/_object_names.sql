-- The tables, types and functions of an index: what a template calls each, and its name in schema foh. The part after the last underscore
-- has none itself, so that two indexes never have an object of the same name.
CREATE OR REPLACE FUNCTION foh._object_names(name text) RETURNS TABLE (suffix text, object name)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s, name || '_' || replace(s, '_', '') FROM unnest(foh._suffixes()) s
$function$;
