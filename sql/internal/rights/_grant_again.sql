-- After the functions of an index were made anew: who could search or update it can do so with the new ones too.
CREATE OR REPLACE FUNCTION foh._grant_again(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT DISTINCT a.grantee::regrole::text AS role, pg_get_userbyid(a.grantee) AS name, a.kind
             FROM (SELECT x.grantee, 'updater' AS kind FROM pg_class c, aclexplode(c.relacl) x
                   WHERE c.oid = i.stream AND x.privilege_type = 'INSERT' AND x.grantee <> c.relowner
                   UNION ALL
                   SELECT x.grantee, 'reader' FROM pg_proc p, aclexplode(p.proacl) x
                   WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name AND x.grantee <> p.proowner) a
             WHERE a.grantee <> 0 AND pg_get_userbyid(a.grantee) <> foh._source_owner(i)
    LOOP
        IF r.kind = 'updater' THEN
            PERFORM foh._grant_index(i, r.name, 'updater');
        ELSE
            PERFORM foh._grant_reading(i, r.name, false);
        END IF;
    END LOOP;
END
$function$;
