-- Takes back from a role what all indexes share, once it can neither search nor update any of them.
CREATE OR REPLACE FUNCTION foh._revoke_unused(role name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f regprocedure;
BEGIN
    IF role = foh._owner() OR role IN (SELECT foh._updaters()) OR EXISTS (SELECT FROM foh.index i, foh._readers(i) r WHERE r = role) THEN
        RETURN;
    END IF;
    FOREACH f IN ARRAY foh._callable('reader') LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', f, role);
    END LOOP;
    EXECUTE format('REVOKE USAGE ON SCHEMA foh FROM %I', role);
END
$function$;
