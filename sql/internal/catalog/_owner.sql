-- The role that all of foh belongs to.
CREATE OR REPLACE FUNCTION foh._owner() RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT r.rolname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE n.nspname = 'foh'
$function$;
