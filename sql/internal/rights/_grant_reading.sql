-- Lets a role search an index, or takes it back: EXECUTE on what a search calls, nothing on our tables.
CREATE OR REPLACE FUNCTION foh._grant_reading(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    shared constant regprocedure[] := foh._callable('reader');
    f regprocedure;
BEGIN
    IF NOT revoke THEN
        EXECUTE format('GRANT USAGE ON SCHEMA foh TO %I', role);
    END IF;
    FOREACH f IN ARRAY foh._callable('reader', i.name) LOOP
        IF NOT revoke THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
        ELSIF f <> ALL (shared) THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', f, role);
        END IF;
    END LOOP;
    PERFORM foh._grant_on_nodes(i, role, revoke);
    IF revoke THEN
        PERFORM foh._revoke_unused(role);
    END IF;
END
$function$;
