-- One at a time may build, update, roll back, refresh or drop an index. A courtesy: the fence is foh.index.version.
CREATE OR REPLACE FUNCTION foh._lock(index int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1179602992, index) THEN
        RAISE EXCEPTION 'foh: an updater is at work on index %', (SELECT quote_literal(i.name) FROM foh.index i WHERE i.id = index)
            USING ERRCODE = 'lock_not_available', HINT = 'Try again when it is done; foh-pg status shows what runs.';
    END IF;
END
$function$;
