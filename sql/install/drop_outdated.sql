-- Drops the functions that all indexes share and that an earlier version made: CREATE OR REPLACE makes a new version of the row
-- in pg_proc, and what is still at its old place was not made again. Who may execute one may execute its namesake.
-- Never what depends on one: its author must say what becomes of it.
DO $foh$
DECLARE
    before constant tid[] := current_setting('foh.functions_before')::tid[];
    f record;
    g record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature, p.proname, p.proacl, p.proowner FROM pg_proc p
             WHERE p.pronamespace = 'foh'::regnamespace AND p.ctid = ANY (before)
               AND NOT EXISTS (SELECT FROM foh.index i WHERE p.proname = ANY (foh._object_names(i.name)))
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
