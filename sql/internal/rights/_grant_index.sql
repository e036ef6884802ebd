-- Lets a role own or update an index: its tables, its functions, and its rows in the tables that all share.
CREATE OR REPLACE FUNCTION foh._grant_index(i foh.index, role name, kind text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    t regclass;
    f regprocedure;
BEGIN
    PERFORM foh._grant_shared(role, kind);
    FOREACH t IN ARRAY foh._tables(i) LOOP
        IF role <> foh._owner() THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', t, role);
            -- An updater vacuums what it has written. Before PostgreSQL 17 only the owner of a table may, and autovacuum does it.
            IF current_setting('server_version_num')::int >= 170000 THEN
                EXECUTE format('GRANT MAINTAIN ON %s TO %I', t, role);
            END IF;
        END IF;
    END LOOP;
    FOREACH f IN ARRAY foh._index_functions(i, kind) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
    END LOOP;
    -- foh's owner calls some functions too: the step of a search that reads the lists encodes rows without bits through one of them.
    FOREACH f IN ARRAY foh._index_functions(i, 'ours') LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, foh._owner());
    END LOOP;
END
$function$;
