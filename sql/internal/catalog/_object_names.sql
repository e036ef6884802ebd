-- The names of the tables and functions of an index.
CREATE OR REPLACE FUNCTION foh._object_names(name text) RETURNS name[]
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg((name || '_' || s)::name) FROM unnest(foh._suffixes()) s
$function$;
