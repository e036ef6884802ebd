-- The roles that may keep indexes up to date.
CREATE OR REPLACE FUNCTION foh._updaters() RETURNS SETOF name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_get_userbyid(a.grantee) FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'foh.run'::regclass AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner)
$function$;
