-- Locks the application's tables of an index, their partitions, and, to drop it, the tables of the index too. A write locks the
-- table before the stream, a search the lists before the table, a transaction partitions in any order: no order of ours
-- suits them all. So only the first table is waited for, with nothing held. Where another one is in use everything is let go,
-- and that one is waited for next. The caller's lock_timeout bounds the whole.
CREATE OR REPLACE FUNCTION foh._lock_tables(i foh.index, mode text, ours boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    deadline constant timestamptz := clock_timestamp() + coalesce(nullif(current_setting('lock_timeout'), '0'), '10s')::interval;
    tables oid[];
    own oid[];
    place int;
    first int := 1;
BEGIN
    LOOP
        tables := foh._tables_to_lock(i);
        own := CASE WHEN ours THEN foh._tables(i.name)::oid[] ELSE '{}' END;
        BEGIN
            FOR turn IN 0 .. cardinality(tables || own) - 1 LOOP
                place := (first - 1 + turn) % cardinality(tables || own) + 1;
                PERFORM set_config('lock_timeout', greatest(1, ceil(1000 * extract(epoch FROM deadline - clock_timestamp())))::text, true);
                EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', (tables || own)[place]::regclass, mode) || CASE WHEN turn > 0 THEN ' NOWAIT' ELSE '' END;
            END LOOP;
            -- A partition may have come before its parent was locked.
            IF foh._tables_to_lock(i) = tables THEN
                RETURN;
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                first := place;
            WHEN undefined_table THEN
                first := 1;
        END;
        IF clock_timestamp() >= deadline THEN
            RAISE EXCEPTION 'foh: % is in use: the triggers of index % were not changed', foh._qualified((tables || own)[place]), quote_literal(i.name)
                USING ERRCODE = 'lock_not_available',
                      HINT = 'Try again when the transactions that hold it are done: pg_stat_activity shows them, by xact_start.';
        END IF;
        PERFORM pg_sleep(0.005 + 0.02 * random());
    END LOOP;
END
$function$;
