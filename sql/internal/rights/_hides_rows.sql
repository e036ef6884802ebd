-- Whether row-level security of a table applies to foh's owner, from whom nothing may be hidden.
CREATE OR REPLACE FUNCTION foh._hides_rows(c pg_catalog.pg_class) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.relrowsecurity AND NOT (r.rolsuper OR r.rolbypassrls) AND (c.relforcerowsecurity OR NOT pg_has_role(r.oid, c.relowner, 'USAGE'))
    FROM pg_roles r WHERE r.rolname = foh._owner()
$function$;
