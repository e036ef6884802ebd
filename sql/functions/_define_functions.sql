-- Makes or replaces the functions of an index from the templates, executable by nobody else.
CREATE OR REPLACE FUNCTION foh._define_functions(i foh.index) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET check_function_bodies = off
AS $function$
DECLARE
    -- CREATE OR REPLACE makes a new version of the row in pg_proc: what is still at its old place was not made again.
    before tid[] := ARRAY(SELECT p.ctid FROM pg_proc p
                          WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name)));
    t record;
    f record;
BEGIN
    FOR t IN SELECT body FROM foh.template WHERE name NOT IN ('tables', 'projection')
             AND (name <> 'capture_labels' OR i.labels_from IS NOT NULL) ORDER BY name
    LOOP
        EXECUTE foh._render(t.body, foh._names(i));
    END LOOP;
    PERFORM foh._drop_outdated(i, before);
    FOR f IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
             WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
    END LOOP;
END
$function$;
