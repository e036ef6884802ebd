-- Queues the keys that partitions took with them or brought along; foh._follow calls it.
-- lost: a partition was emptied or is gone. attached: partitions with rows that no trigger may have seen.
CREATE OR REPLACE FUNCTION {follow}(lost boolean, attached oid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: rows that are not seen would be taken for gone.
SET row_security = off
SET plan_cache_mode = force_custom_plan
SET work_mem = '64MB'
SET jit = off
AS $body$
DECLARE
    queued bigint := 0;
    n bigint;
BEGIN
    PERFORM foh._open({tables_text});
    IF lost THEN
        -- Searches leave out what is gone from the table, so they pass over these entries (op l); the next update looks for the
        -- rows. A tombstone would hide a row that another transaction is writing under one of these keys.
        INSERT INTO {stream} (key, op, version, center, fresh)
        SELECT i.key, 'l', 0, 2147483647, true FROM {item} i WHERE NOT EXISTS (SELECT FROM {source} s WHERE s.{key} = i.key{key_collate});
        GET DIAGNOSTICS queued = ROW_COUNT;
    END IF;
    IF attached <> '{}' THEN
        -- Rows that came by INSERT or UPDATE have an entry.
        INSERT INTO {stream} (key, op, version, center)
        SELECT s.{key}, 'u', 0, 0 FROM {source} s
        WHERE s.tableoid = ANY (attached) AND s.{embedding} IS NOT NULL
          AND NOT EXISTS (SELECT FROM {stream} e WHERE e.key = s.{key}{our_collate} AND e.op <> 'l');
        GET DIAGNOSTICS n = ROW_COUNT;
        queued := queued + n;
    END IF;
    RETURN queued;
END
$body$;
