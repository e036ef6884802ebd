-- Removes from all nodes what foh._attach_distributed made.
CREATE OR REPLACE FUNCTION foh._detach_distributed(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $function$
DECLARE
    names constant jsonb := foh._node_names(i);
    was text[];
    t record;
BEGIN
    -- The table itself may have been dropped before.
    IF to_regclass(names ->> 'inbox') IS NULL THEN
        RETURN;
    END IF;
    was := foh._begin_spread(i);
    FOR t IN SELECT g.tgname FROM pg_trigger g WHERE g.tgrelid = i.source AND g.tgfoid = to_regproc(names ->> 'note') LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, i.source_name);
    END LOOP;
    -- CASCADE: a shard that was moved has a trigger of its own for TRUNCATE.
    EXECUTE foh._render('DROP FUNCTION IF EXISTS {note}() CASCADE', names);
    FOR t IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
             WHERE p.oid IN (to_regproc(names ->> 'read'), to_regproc(names ->> 'waiting')) LOOP
        EXECUTE format('DROP FUNCTION %s', t.signature);
    END LOOP;
    EXECUTE foh._render('DROP TABLE IF EXISTS {token}, {inbox}', names);
    PERFORM foh._end_spread(was);
END
$function$;
