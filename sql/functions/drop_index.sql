-- Removes an index: its triggers, tables and functions. Waits at most 10 seconds for transactions that use them.
CREATE OR REPLACE FUNCTION foh.drop_index(name text, if_exists boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '10s'
SET client_min_messages = warning
AS $function$
DECLARE
    i foh.index;
    citus text[];
BEGIN
    PERFORM foh._require_owner();
    IF if_exists AND NOT EXISTS (SELECT FROM foh.index x WHERE x.name = drop_index.name) THEN
        RETURN;
    END IF;
    i := foh._index(name);
    citus := foh._begin_local();
    PERFORM foh._lock(i.id);
    PERFORM foh._lock_tables(i, 'ACCESS EXCLUSIVE', true);
    PERFORM foh._detach_distributed(i);
    PERFORM foh._drop_objects(i);
    PERFORM foh._end_local(citus);
END
$function$;
