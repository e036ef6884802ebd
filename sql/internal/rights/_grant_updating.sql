-- Lets a role keep an index up to date, or takes it back.
CREATE OR REPLACE FUNCTION foh._grant_updating(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    o text;
BEGIN
    IF NOT revoke THEN
        PERFORM foh._grant_index(i, role, 'updater');
        RETURN;
    ELSIF role IN (foh._source_owner(i), foh._owner()) THEN
        RETURN;
    END IF;
    FOREACH o IN ARRAY foh._tables(i)::text[] LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %I', o, role);
    END LOOP;
    FOREACH o IN ARRAY foh._index_functions(i, 'updater')::text[] LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', o, role);
    END LOOP;
    PERFORM foh._revoke_unused(role);
END
$function$;
