-- Drops the triggers of an index, wherever they are: Citus may have moved them to a shard of the table.
CREATE OR REPLACE FUNCTION foh._remove_triggers(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT g.tgname, g.tgrelid::regclass AS relation FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
             WHERE g.tgparentid = 0 AND p.pronamespace = 'foh'::regnamespace
               AND p.proname IN ((i.name || '_capture')::name, (i.name || '_capture_labels')::name)
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.relation);
    END LOOP;
END
$function$;
