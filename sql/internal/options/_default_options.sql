-- Every option of an index and its default.
CREATE OR REPLACE FUNCTION foh._default_options() RETURNS jsonb
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_object_agg(o.name, o.standard) FROM foh._options() o
$function$;
