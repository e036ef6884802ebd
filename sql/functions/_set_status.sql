CREATE OR REPLACE FUNCTION foh._set_status(index int, status text) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
    UPDATE foh.index i SET status = _set_status.status WHERE i.id = index
$function$;
