-- Lets a role search an index, or takes it back: EXECUTE on what a search calls, nothing on our tables.
CREATE OR REPLACE FUNCTION foh._grant_reading(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f regprocedure;
BEGIN
    IF NOT revoke THEN
        EXECUTE format('GRANT USAGE ON SCHEMA foh TO %I', role);
    END IF;
    FOREACH f IN ARRAY foh._index_functions(i, 'reader') || CASE WHEN NOT revoke THEN foh._shared_functions('reader') END LOOP
        EXECUTE format(CASE WHEN revoke THEN 'REVOKE EXECUTE ON FUNCTION %s FROM %I' ELSE 'GRANT EXECUTE ON FUNCTION %s TO %I' END, f, role);
    END LOOP;
    IF revoke THEN
        PERFORM foh._revoke_unused(role);
    END IF;
END
$function$;
