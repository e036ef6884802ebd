-- Locks: one updater at a time works on an index, and its tables are locked while triggers change.

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

-- The server process of the updater that works on an index; null where there is none. The row of foh.updating holds for as long
-- as that process, in a session of that role, has the advisory lock with that random key. This cannot be forged: another process
-- may take the same key, but has another number; a later process may get the same number, but not in a session of that role.
CREATE OR REPLACE FUNCTION foh._holder(index int) RETURNS int
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT u.pid FROM foh.updating u
    WHERE u.index = $1
      AND EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'advisory' AND l.granted AND l.pid = u.pid AND l.objsubid = 1
                    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                    AND l.classid = ((u.key >> 32) & 4294967295)::oid AND l.objid = (u.key & 4294967295)::oid)
      AND EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = u.pid AND a.usename = u.role)
$function$;

-- The application's tables of an index that are still there, each with its partitions, parents first. A table of another role is left
-- out: who is not its owner may not lock it, and making or dropping a trigger does so.
CREATE OR REPLACE FUNCTION foh._tables_to_lock(i foh.index) RETURNS oid[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(p.oid ORDER BY t.number, p.level, p.oid), '{}')
    FROM unnest(ARRAY[i.source, i.labels_from]::oid[]) WITH ORDINALITY AS t (oid, number)
    CROSS JOIN LATERAL foh._partitions(t.oid) p JOIN pg_class c ON c.oid = p.oid AND pg_has_role(c.relowner, 'USAGE')
$function$;

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
