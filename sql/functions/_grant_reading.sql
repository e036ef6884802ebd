-- Lets a role search an index, or takes it back: EXECUTE on what a search calls, nothing on our tables.
CREATE OR REPLACE FUNCTION foh._grant_reading(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f regprocedure;
    shared boolean;
BEGIN
    IF NOT revoke THEN
        EXECUTE format('GRANT USAGE ON SCHEMA foh TO %I', role);
    END IF;
    -- What all indexes share stays while the role can search another one.
    shared := NOT revoke OR NOT EXISTS (
        SELECT FROM foh.index x JOIN pg_proc p ON p.pronamespace = 'foh'::regnamespace AND p.proname = (x.name || '_search')::name
        WHERE x.id <> i.id AND has_function_privilege(role, p.oid, 'EXECUTE'));
    FOREACH f IN ARRAY foh._reader_functions(i) LOOP
        IF shared OR starts_with((SELECT p.proname::text FROM pg_proc p WHERE p.oid = f), i.name || '_') THEN
            EXECUTE format(CASE WHEN revoke THEN 'REVOKE EXECUTE ON FUNCTION %s FROM %I' ELSE 'GRANT EXECUTE ON FUNCTION %s TO %I' END, f, role);
        END IF;
    END LOOP;
    IF revoke AND shared THEN
        EXECUTE format('REVOKE USAGE ON SCHEMA foh FROM %I', role);
    END IF;
END
$function$;
