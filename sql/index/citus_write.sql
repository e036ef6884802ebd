-- Distributed tables of Citus, writing: what is on every node, and what brings it to the coordinator.

-- foh: script node_tables, if distributed
-- On every node, beside the table and colocated with it: the keys that were written and that no pull has taken yet. A trigger on a shard
-- of the table writes to the shard of the inbox with the same range, in the same transaction, and asks no other node.
-- op: n(ote), d(elete: also of a row whose embedding cannot be used), t(runcate), r(esync: the key column is not what it was).
CREATE TABLE {inbox} (
    key        {key_type} NOT NULL,
    entry      uuid NOT NULL DEFAULT gen_random_uuid(),
    op         "char" NOT NULL DEFAULT 'n',
    written_at timestamptz NOT NULL DEFAULT now(),
    -- The vector that was written, by which a search chooses among the keys that wait; null in an entry n where the columns of the table
    -- were not what they were.
    x          {query_type}
    -- A vector that fits a page stays in it: nothing has to be looked up in another table.
) WITH (autovacuum_vacuum_scale_factor = 0.02, toast_tuple_target = 8160);
-- By this a shard is replicated while it moves under writes.
ALTER TABLE {inbox} {inbox_identity};
-- A key for each shard: a statement about it is sent to the node where that shard is now.
CREATE TABLE {token} (key {key_type} NOT NULL PRIMARY KEY);
GRANT SELECT ON {token} TO PUBLIC;
SELECT create_distributed_table({inbox_text}, 'key', colocate_with => {source_text});
SELECT create_distributed_table({token_text}, 'key', colocate_with => {source_text});

-- foh: node note, if distributed
-- The trigger of the shards: notes the keys that a statement touched, and their vectors, in the transaction and on the node of the
-- statement. Nothing is encoded here: the hash functions are on the coordinator. Runs as the owner of the table.
-- The shard of the inbox is written to by its own name. Through Citus the statement would wait for a move of the shard, which in turn
-- waits for this transaction.
CREATE OR REPLACE FUNCTION {note}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET jit = off
AS $body$
DECLARE
    inbox text;
    columns int;
    deadline timestamptz := clock_timestamp() + interval '10 seconds';
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        -- Noted once, by the trigger of the table; a shard that was moved has this trigger too.
        IF EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = TG_RELID) THEN
            INSERT INTO {inbox} (key, op) VALUES ({key_zero}, 't');
        END IF;
        RETURN NULL;
    END IF;
    LOOP
        SELECT format('%I.%I', {schema_text}, {inbox_name} || '_' || i.shardid) INTO inbox
        FROM pg_dist_shard s JOIN pg_dist_shard i ON i.logicalrelid = {inbox_text}::regclass AND i.shardminvalue = s.shardminvalue
        WHERE s.shardid = substring(TG_TABLE_NAME FROM '[0-9]+$')::bigint;
        EXIT WHEN FOUND;
        -- The shard was just split, and this node hears of it a moment later.
        IF clock_timestamp() > deadline THEN
            RAISE EXCEPTION 'foh: this node knows of no shard of % beside %', {inbox_text}, TG_TABLE_NAME
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'SELECT foh.refresh(' || quote_literal({name}) || ') on the coordinator.';
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    -- A column may have been renamed or retyped since. The write never fails for this.
    SELECT count(*) FILTER (WHERE a.attname = {key_text} AND a.atttypid = {key_type_text}::regtype)
           + count(*) FILTER (WHERE a.attname = {embedding_text} AND a.atttypid = to_regtype({embedding_type_text}) AND a.atttypmod = {embedding_typmod}) * 2
           + count(*) FILTER (WHERE a.attname IS NOT DISTINCT FROM {labels_text}::name) * 4
           + count(*) FILTER (WHERE concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) = ANY ({included_columns}::text[])) * 8 INTO columns
    FROM pg_attribute a WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped;
    IF columns & 1 = 0 THEN
        EXECUTE format('INSERT INTO %s (key, op) VALUES (%L, ''r'')', inbox, {key_zero});
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE format('INSERT INTO %s (key, op) SELECT o.%I, ''d'' FROM old_rows o', inbox, {key_text});
    ELSIF TG_OP = 'INSERT' AND columns & 2 = 2 THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ (key, op, x) SELECT s.key, CASE WHEN s.x IS NULL THEN 'd' ELSE 'n' END, {unit}(s.x){center_cast}
                                                 FROM (SELECT s.{key_name} AS key, {to_vector} AS x FROM new_rows s OFFSET 0) s$sql$;
    ELSIF TG_OP = 'INSERT' THEN
        EXECUTE format('INSERT INTO %s (key) SELECT n.%I FROM new_rows n', inbox, {key_text});
    ELSIF columns = (CASE WHEN {labels_text}::name IS NULL THEN 3 ELSE 7 END) + 8 * cardinality({included_columns}::text[]) THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ (key, op, x) SELECT s.key, CASE WHEN s.x IS NULL THEN 'd' ELSE 'n' END, {unit}(s.x){center_cast}
                                                 FROM (SELECT coalesce(s.{key_name}, o.{key_name}) AS key, {to_vector} AS x FROM new_rows s FULL JOIN old_rows o ON o.{key_name} = s.{key_name}
                                                       WHERE s.{key_name} IS NULL OR o.{key_name} IS NULL OR {changed} OFFSET 0) s$sql$;
    ELSE
        EXECUTE format('INSERT INTO %1$s (key) SELECT n.%2$I FROM new_rows n UNION SELECT o.%2$I FROM old_rows o', inbox, {key_text});
    END IF;
    RETURN NULL;
END
$body$;

-- foh: function record_shards, if distributed
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

-- foh: function inbox_keys, if distributed, called by readers
-- The keys that wait in the inbox.
CREATE OR REPLACE FUNCTION {inbox_keys}() RETURNS SETOF {key_type}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    RETURN QUERY SELECT DISTINCT i.key FROM {inbox} i;
END
$body$;

-- foh: function inbox_stat, if distributed, called by updaters
-- How many entries wait in the inbox, and since when.
CREATE OR REPLACE FUNCTION {inbox_stat}(OUT entries bigint, OUT since timestamptz)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    SELECT count(*), min(i.written_at) INTO entries, since FROM {inbox} i;
END
$body$;

-- foh: function source_rows, if distributed
-- The table, or the rows of some keys, for statements that join them with tables of foh: Citus would send such a statement to the nodes,
-- where foh is not.
CREATE OR REPLACE FUNCTION {source_rows}(keys {key_type}[] DEFAULT NULL) RETURNS SETOF {source}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    PERFORM foh._open({tables_text});
    IF keys IS NULL THEN
        RETURN QUERY SELECT s.* FROM {source} s;
    ELSE
        RETURN QUERY SELECT s.* FROM {source} s WHERE s.{key_name} = ANY ($1{key_collate});
    END IF;
END
$body$;

-- foh: function pull, if distributed, called by updaters
-- Moves what waits in the inbox into the stream, in two steps, each a transaction of the caller's: the first writes entries with their bits
-- to the stream, the second, given what the first returned, deletes them from the inbox. Between the two a key is in both, which is
-- harmless; it is never in neither. The rows are read after the entries, so that each is at least as new as its entry. keys_only: leave
-- the bits out, for a caller that reads all rows afterwards anyway.
CREATE OR REPLACE FUNCTION {pull}(most int, keys_only boolean DEFAULT false) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    entries uuid[];
    keys {key_type}[];
    marked boolean;
BEGIN
    PERFORM foh._open({tables_text});
    PERFORM {record_shards}();
    SELECT array_agg(i.entry), array_agg(i.key) FILTER (WHERE i.op IN ('n', 'd')), bool_or(i.op NOT IN ('n', 'd')) INTO entries, keys, marked
    FROM (SELECT i.entry, i.key, i.op FROM {inbox} i LIMIT most) i;
    IF marked THEN
        INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
    END IF;
    IF keys_only THEN
        INSERT INTO {stream} (key, op, version, center) SELECT DISTINCT k.key, 'u'::"char", 0, 0 FROM unnest(keys) AS k (key);
    ELSIF keys IS NOT NULL THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh{included_names})
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh{included_of_v}
        FROM (SELECT k.key, w.x, w.labels{included_of_w} FROM (SELECT DISTINCT u.key FROM unnest(keys) AS u (key)) k
              LEFT JOIN {rows}(keys => keys) w ON w.key = k.key{key_collate} OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, true) r;
    END IF;
    RETURN coalesce(entries, '{}');
END
$body$;

-- foh: function pulled, if distributed, called by updaters
-- The second step of a pull: deletes entries that are committed in the stream from the inbox.
CREATE OR REPLACE FUNCTION {pulled}(entries uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    DELETE FROM {inbox} i WHERE i.entry = ANY (entries);
END
$body$;
