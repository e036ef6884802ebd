-- The roles that may search or update an index beside the owner of its table.
CREATE OR REPLACE FUNCTION foh._grantees(i foh.index) RETURNS TABLE (role name, kind text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT DISTINCT pg_get_userbyid(a.grantee), a.kind
    FROM (SELECT x.grantee, 'updater' AS kind FROM pg_class c, aclexplode(c.relacl) x
          WHERE c.oid = i.stream AND x.privilege_type = 'INSERT' AND x.grantee <> c.relowner
          UNION ALL
          SELECT x.grantee, 'reader' FROM pg_proc p, aclexplode(p.proacl) x
          WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name AND x.grantee <> p.proowner) a
    -- No role is known as the owner where the table and the functions of the index are gone.
    WHERE a.grantee <> 0 AND pg_get_userbyid(a.grantee) IS DISTINCT FROM foh._source_owner(i)
$function$;
