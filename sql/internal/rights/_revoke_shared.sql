-- Takes back what _grant_shared gave.
CREATE OR REPLACE FUNCTION foh._revoke_shared(role name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f regprocedure;
BEGIN
    IF role = foh._owner() THEN
        RETURN;
    END IF;
    EXECUTE format('REVOKE ALL ON foh.alembic_version, foh.index, foh.label, foh.model, foh.model_state, foh.run, foh.index_stat, foh.updating, foh.claim FROM %I', role);
    FOREACH f IN ARRAY foh._shared_functions('owner') LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', f, role);
    END LOOP;
    EXECUTE format('REVOKE USAGE ON SCHEMA foh FROM %I', role);
END
$function$;
