-- Drops the shared functions that an earlier version made and the present one does not have. CREATE OR REPLACE writes a new row
-- version in pg_proc, so a function that is still at its old ctid was not made again. Roles that may execute a dropped
-- function may execute its successor of the same name. An object that depends on such a function is never dropped: the
-- DROP fails, and the author of the object decides.
DO $foh$
DECLARE
    before constant tid[] := current_setting('foh.functions_before')::tid[];
    f record;
    g record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature, p.proname, p.proacl, p.proowner FROM pg_proc p
             WHERE p.pronamespace = 'foh'::regnamespace AND p.ctid = ANY (before)
               AND p.oid IS DISTINCT FROM to_regprocedure('foh._as_owner(text)') AND NOT EXISTS (SELECT FROM foh.index i WHERE p.oid IN (SELECT o.oid FROM foh._functions(i.name) o))
    LOOP
        FOR g IN SELECT n.oid::regprocedure AS successor, a.grantee::regrole AS role
                 FROM pg_proc n, aclexplode(f.proacl) a
                 WHERE n.pronamespace = 'foh'::regnamespace AND n.proname = f.proname AND n.ctid <> ALL (before) AND a.grantee NOT IN (0, f.proowner)
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', g.successor, g.role);
        END LOOP;
        EXECUTE format('DROP FUNCTION %s', f.signature);
    END LOOP;
END
$foh$;
