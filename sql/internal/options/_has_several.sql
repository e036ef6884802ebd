-- Whether the options of an index put rows into several lists.
CREATE OR REPLACE FUNCTION foh._has_several(i foh.index) RETURNS boolean
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (i.options ->> 'homes')::int > 1 OR (i.options ->> 'neighbors')::int > 0
$function$;
