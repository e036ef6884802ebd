-- Lets a role keep all indexes up to date, or takes it back. Of foh.index it may change what a run changes and nothing else: names and
-- options become part of functions.
CREATE OR REPLACE FUNCTION foh._grant_updating(role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- An updater vacuums what it has written. Before PostgreSQL 17 only the owner of a table may, and autovacuum does it.
    rights constant text := 'SELECT, INSERT, UPDATE, DELETE' || CASE WHEN current_setting('server_version_num')::int >= 170000 THEN ', MAINTAIN' ELSE '' END;
    o text;
    statements text[];
BEGIN
    statements := ARRAY['USAGE ON SCHEMA foh', 'SELECT ON foh.alembic_version, foh.code, foh.index, foh.index_stat, foh.updating',
                        'UPDATE (version, status, next_center) ON foh.index', 'UPDATE (pid, key, role, partitions) ON foh.updating',
                        rights || ' ON foh.label, foh.model, foh.model_state, foh.run']
                  || ARRAY(SELECT format('%s ON %s', rights, t) FROM foh.index i, unnest(foh._tables(i.name)) t)
                  || ARRAY(SELECT format('EXECUTE ON FUNCTION %s', f) FROM unnest(foh._callable('updater')) f);
    FOREACH o IN ARRAY statements LOOP
        EXECUTE CASE WHEN revoke THEN format('REVOKE %s FROM %I', o, role) ELSE format('GRANT %s TO %I', o, role) END;
    END LOOP;
END
$function$;
