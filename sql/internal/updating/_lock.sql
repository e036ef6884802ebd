-- Only one at a time may build, update, roll back, refresh or drop an index. This lock is a courtesy; the fence, which keeps two
-- updaters apart for certain, is foh.index.version. Work of one transaction locks the row of foh.updating; an updater, which
-- needs many transactions, writes its process into that row.
CREATE OR REPLACE FUNCTION foh._lock(index int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    busy boolean := false;
BEGIN
    BEGIN
        PERFORM FROM foh.updating u WHERE u.index = _lock.index FOR UPDATE NOWAIT;
    EXCEPTION WHEN lock_not_available THEN
        busy := true;
    END;
    IF busy OR foh._holder(index) <> pg_backend_pid() THEN
        RAISE EXCEPTION 'foh: an updater is at work on index %', (SELECT quote_literal(i.name) FROM foh.index i WHERE i.id = index)
            USING ERRCODE = 'lock_not_available', HINT = 'Try again when it is done; foh-pg status shows what runs.';
    END IF;
END
$function$;
