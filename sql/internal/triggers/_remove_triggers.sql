CREATE OR REPLACE FUNCTION foh._remove_triggers(i foh.index, relation regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT g.tgname FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
             WHERE g.tgrelid = relation AND g.tgparentid = 0 AND p.pronamespace = 'foh'::regnamespace
               AND p.proname IN ((i.name || '_capture')::name, (i.name || '_capture_labels')::name)
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, relation);
    END LOOP;
END
$function$;
