-- The roles that may search an index.
CREATE OR REPLACE FUNCTION foh._readers(i foh.index) RETURNS SETOF name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_get_userbyid(a.grantee) FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name AND a.grantee NOT IN (0, p.proowner)
$function$;
