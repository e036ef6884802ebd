-- The part of foh._lock_tables that locks a table of the index itself, for a role that may drop the index.
CREATE OR REPLACE FUNCTION foh._lock_own(index int, relation oid, at_once boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
BEGIN
    SELECT * INTO STRICT i FROM foh.index x WHERE x.id = _lock_own.index;
    PERFORM foh._claimed(i.source, coalesce(foh._source_owner(i), foh._owner()));
    IF relation = ANY (foh._tables(i)::oid[]) THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation::regclass) || CASE WHEN at_once THEN ' NOWAIT' ELSE '' END;
    END IF;
END
$function$;
