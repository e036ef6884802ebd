-- What a role of that kind (owner or updater) needs of all that indexes share. The rows it sees there are those of its own
-- indexes: see migrations/sql/0003_policies.sql.
CREATE OR REPLACE FUNCTION foh._grant_shared(role name, kind text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f regprocedure;
BEGIN
    IF role = foh._owner() THEN
        RETURN;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA foh TO %I', role);
    EXECUTE format('GRANT SELECT ON foh.alembic_version, foh.index, foh.label, foh.model, foh.model_state, foh.run, foh.index_stat, foh.updating TO %I', role);
    EXECUTE format('GRANT UPDATE (version, status, next_center) ON foh.index TO %I', role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON foh.label, foh.model, foh.model_state, foh.run TO %I', role);
    EXECUTE format('GRANT UPDATE (pid, key, role, partitions) ON foh.updating TO %I', role);
    IF kind = 'owner' THEN
        EXECUTE format('GRANT INSERT (source) ON foh.claim TO %I', role);
    END IF;
    FOREACH f IN ARRAY foh._shared_functions(kind) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
    END LOOP;
END
$function$;
