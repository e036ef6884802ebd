-- PostgreSQL lets PUBLIC execute every new function. This runs last, in the transaction that made the functions. Those of an index that
-- belong to the owner of its table were taken from PUBLIC when they were given to that role.
DO $foh$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proowner = current_user::regrole LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END
$foh$;
