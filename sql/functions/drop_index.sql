-- Removes an index: its triggers, tables and functions. Waits at most 10 seconds for transactions that use them.
CREATE OR REPLACE FUNCTION foh.drop_index(name text, if_exists boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- The policies of foh show each role its own rows. A session that has switched row_security off would get errors instead.
SET row_security = on
SET lock_timeout = '10s'
AS $function$
DECLARE
    i foh.index;
    citus text[];
BEGIN
    IF if_exists AND NOT EXISTS (SELECT FROM foh.index x WHERE x.name = drop_index.name) THEN
        RETURN;
    END IF;
    i := foh._index(name);
    citus := foh._begin_local();
    PERFORM foh._lock(i.id);
    PERFORM foh._check_ownership(c.oid) FROM pg_class c WHERE c.oid IN (i.source, i.labels_from);
    PERFORM foh._lock_tables(i, 'ACCESS EXCLUSIVE', true);
    PERFORM foh._detach_distributed(i);
    PERFORM foh._remove_triggers(i);
    PERFORM foh._claim(i.source);
    PERFORM foh._drop_objects(i.id);
    PERFORM foh._end_local(citus);
END
$function$;
