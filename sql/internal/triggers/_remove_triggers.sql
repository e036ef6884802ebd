-- Drops the triggers of an index, wherever they are: Citus may have moved them to a shard of the table. They go with their functions,
-- which foh's owner may drop even where the table belongs to another role.
CREATE OR REPLACE FUNCTION foh._remove_triggers(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $function$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature FROM foh._functions(i.name) p WHERE p.prorettype = 'trigger'::regtype LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', f.signature);
    END LOOP;
END
$function$;
