-- Writes down which shards the table has, which shard of the inbox lies beside each, and a key that leads to it. Does nothing where that
-- is written down already: the shards change when one is split, not when one moves.
CREATE OR REPLACE FUNCTION {record_shards}() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
DECLARE
    known bigint[];
    present bigint[];
    number int := 0;
    found {key_type};
    leads bigint;
BEGIN
    PERFORM foh._open({tables_text});
    SELECT array_agg(s.shardid ORDER BY s.shardid) INTO present FROM pg_dist_shard s WHERE s.logicalrelid = {source_text}::regclass;
    SELECT array_agg(s.shard ORDER BY s.shard) INTO known FROM {shard} s;
    IF known IS NOT DISTINCT FROM present THEN
        RETURN;
    END IF;
    DELETE FROM {shard} s WHERE s.shard <> ALL (present);
    WHILE EXISTS (SELECT FROM unnest(present) AS p (shard) WHERE NOT EXISTS (SELECT FROM {shard} s WHERE s.shard = p.shard)) LOOP
        number := number + 1;
        found := {key_numbered};
        leads := get_shard_id_for_distribution_column({source_text}::regclass, found);
        IF NOT EXISTS (SELECT FROM {shard} s WHERE s.shard = leads) THEN
            INSERT INTO {token} (key) VALUES (found) ON CONFLICT DO NOTHING;
            INSERT INTO {shard} (shard, inbox, token, first)
            SELECT leads, get_shard_id_for_distribution_column({inbox_text}::regclass, found), found, d.shardminvalue::int
            FROM pg_dist_shard d WHERE d.shardid = leads;
        END IF;
    END LOOP;
END
$body$;
