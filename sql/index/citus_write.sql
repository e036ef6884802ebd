-- Distributed tables of Citus, writing: what is on every node, and what brings it to the coordinator.

-- foh: script node_tables, if distributed
-- On every node, beside the table and colocated with it: the keys that were written and that no pull has taken yet. A trigger on a shard
-- of the table writes to the shard of the inbox with the same range, in the same transaction, and asks no other node.
-- op: n(ote), d(elete: also of a row whose embedding cannot be used), t(runcate), r(esync: the key column is not what it was).
CREATE TABLE {inbox} (
    {each k# ~ NOT NULL},
    entry      uuid NOT NULL DEFAULT gen_random_uuid(),
    op         "char" NOT NULL DEFAULT 'n',
    written_at timestamptz NOT NULL DEFAULT now(),
    -- The vector that was written, by which a search chooses among the keys that wait; null in an entry n where the columns of the table
    -- were not what they were.
    x          {noted_type}
    -- A vector that fits a page stays in it: nothing has to be looked up in another table.
) WITH (autovacuum_vacuum_scale_factor = 0.02, toast_tuple_target = 8160);
-- By this a shard is replicated while it moves under writes.
ALTER TABLE {inbox} {inbox_identity};
-- A value of the distribution column for each shard: a statement about it is sent to the node where that shard is now.
CREATE TABLE {token} (key {home ~} NOT NULL PRIMARY KEY);
GRANT SELECT ON {token} TO PUBLIC;
SELECT create_distributed_table({inbox_text}, 'k{home #}', colocate_with => {source_text});
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
    -- Whether the columns of the key, the embedding, and all others are what they were.
    has_key boolean;
    has_embedding boolean;
    has_others boolean;
    deadline timestamptz := clock_timestamp() + interval '10 seconds';
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        -- Noted once, by the trigger of the table; a shard that was moved has this trigger too.
        IF EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = TG_RELID) THEN
            INSERT INTO {inbox} ({each k#}, op) VALUES ({key_zero}, 't');
        END IF;
        RETURN NULL;
    ELSIF TG_RELID = to_regclass({source_text}) OR TG_TABLE_NAME !~ '_[0-9]+$' THEN
        -- No shard: undistribute_table has made an ordinary table, with the triggers of the old one. The write does not fail for this.
        RAISE WARNING 'foh: % is not distributed any more, and index % does not follow it', TG_RELID::regclass, {name}
            USING HINT = format('SELECT foh.drop_index(%L), and create the index again.', {name});
        RETURN NULL;
    END IF;
    LOOP
        SELECT {inbox_prefix} || i.shardid || '"' INTO inbox
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
    SELECT count(*) FILTER (WHERE concat_ws(' ', a.attname, format_type(a.atttypid, NULL)) = ANY ({key_recorded}::text[])) = cardinality({key_recorded}::text[]),
           count(*) FILTER (WHERE a.attname = {embedding_text} AND a.atttypid = to_regtype({embedding_type_text}) AND a.atttypmod = {embedding_typmod}) = 1,
           count(*) FILTER (WHERE a.attname = {labels_text}::name) = num_nonnulls({labels_text}::name)
           AND count(*) FILTER (WHERE concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) = ANY ({included_recorded}::text[])) = cardinality({included_recorded}::text[])
    INTO has_key, has_embedding, has_others
    FROM pg_attribute a WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT has_key THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ ({each k#}, op) VALUES ({key_zero}, 'r')$sql$;
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ ({each k#}, op) SELECT {each s.@}, 'd' FROM old_rows s$sql$;
    ELSIF TG_OP = 'INSERT' AND has_embedding THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ ({each k#}, op, x) SELECT {each s.k#}, CASE WHEN s.x IS NULL THEN 'd' ELSE 'n' END, {unit}(s.x)::{noted_type}
                                                 FROM (SELECT {each s.@ AS k#}, {to_vector} AS x FROM new_rows s OFFSET 0) s$sql$;
    ELSIF TG_OP = 'INSERT' THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ ({each k#}) SELECT {each s.@} FROM new_rows s$sql$;
    ELSIF has_embedding AND has_others THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ ({each k#}, op, x) SELECT {each s.k#}, CASE WHEN s.x IS NULL THEN 'd' ELSE 'n' END, {unit}(s.x)::{noted_type}
                                                 FROM (SELECT {each coalesce(s.@, o.@) AS k#}, {to_vector} AS x FROM new_rows s FULL JOIN old_rows o ON {each o.@ = s.@ AND}
                                                       WHERE {each s.@ IS NULL AND} OR {each o.@ IS NULL AND} OR {changed} OFFSET 0) s$sql$;
    ELSE
        EXECUTE 'INSERT INTO ' || inbox || $sql$ ({each k#}) SELECT {each s.@} FROM new_rows s UNION SELECT {each s.@} FROM old_rows s$sql$;
    END IF;
    RETURN NULL;
END
$body$;

-- foh: function record_shards, if distributed
-- Writes down which shards the table has, which shard of the inbox lies beside each, and a value of the distribution column that leads to it. Does nothing where that
-- is written down already: the shards change when one is split, not when one moves.
CREATE OR REPLACE FUNCTION {self}() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off{iso_dates}
AS $body$
DECLARE
    known bigint[];
    present bigint[];
    number int := 0;
    found {home ~};
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
        found := {home_numbered};
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
CREATE OR REPLACE FUNCTION {self}() RETURNS SETOF {key_type}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    {each keys_# ~[];}
BEGIN
    SELECT {each array_agg(e.k#)} INTO {each keys_#} FROM (SELECT DISTINCT {each i.k#} FROM {inbox} i) e;
    RETURN QUERY SELECT {each pg_catalog.unnest(keys_#) AS k#};
END
$body$;

-- foh: function inbox_stat, if distributed, called by updaters
-- How many entries wait in the inbox, and since when.
CREATE OR REPLACE FUNCTION {self}(OUT entries bigint, OUT since timestamptz)
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
-- The table, or the row of a key, for statements that join them with tables of foh: Citus would send such a statement to the nodes,
-- where foh is not.
CREATE OR REPLACE FUNCTION {self}(key {key_type} DEFAULT NULL) RETURNS SETOF {source}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
#variable_conflict use_variable
DECLARE
    {each key_# ~;}
BEGIN
    PERFORM foh._open({tables_text});
    IF key IS NULL THEN
        RETURN QUERY SELECT s.* FROM {source} s;
    ELSE
        SELECT {each <key>} INTO {each key_#};
        RETURN QUERY SELECT s.* FROM {source} s WHERE {each s.@ = key_# AND};
    END IF;
END
$body$;

-- foh: function rows, if distributed, called by updaters
-- As the other one of this name. The nodes do not know the type of the key, and send its columns.
CREATE OR REPLACE FUNCTION {self}(keys {key_type}[] DEFAULT NULL, after {key_type} DEFAULT NULL, wanted int DEFAULT NULL,
                                  sampled bigint DEFAULT 4294967296, held_out bigint DEFAULT 4294967296)
RETURNS TABLE (key {key_type}, x {vector}.vector, labels text[]{included , included_# ~})
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: an updater that did not see them would drop them from the index.
SET row_security = off{iso_dates}
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    {each keys_# ~[];}
    {each key_# ~;}
    condition text;
BEGIN
    PERFORM foh._open({tables_text});
    SELECT {each pg_catalog.array_agg(<e.key>) AS keys_#} INTO {each keys_#} FROM (SELECT unnest(keys) AS key) e;
    IF keys IS NOT NULL THEN
        condition := $sql$({to_vector}) IS NOT NULL AND {s_is_among}$sql$;
    ELSIF wanted IS NOT NULL THEN
        condition := $sql$s.{embedding} IS NOT NULL$sql$ || CASE WHEN after IS NULL THEN '' ELSE $sql$ AND {s_is_after_parts}$sql$ END
                     || $sql$ ORDER BY {each s.@} LIMIT $sql$ || wanted;
    ELSE
        condition := $sql$({to_vector}) IS NOT NULL AND ('x' || left({key_digest}, 8))::bit(32)::bigint < $sql$ || held_out
                     || $sql$ AND ('x' || substr({key_digest}, 9, 8))::bit(32)::bigint < $sql$ || sampled || $sql$ ORDER BY {each s.@}$sql$;
    END IF;
    FOR {each key_#}, x, labels{included , included_#} IN
        EXECUTE $sql$SELECT {each s.@}, {to_vector}, {labels_of}{included , s.@::~ AS included_#} FROM {source} s WHERE $sql$ || condition USING {each keys_#}, {each <after>}
    LOOP
        key := {row key_#};
        RETURN NEXT;
    END LOOP;
END
$body$;

-- foh: function found_labels, if distributed, called by readers
-- The labels of rows that were found, with the rights of the caller, and the place of each row among the keys.
CREATE OR REPLACE FUNCTION {self}(keys {key_type}[]) RETURNS TABLE (place int, names text[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp{iso_dates}
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    {each keys_# ~[];}
    {each key_# ~;}
BEGIN
    SELECT {each pg_catalog.array_agg(<e.key>) AS keys_#} INTO {each keys_#} FROM (SELECT unnest(keys) AS key) e;
    FOR {each key_#}, names IN EXECUTE $sql$SELECT {each s.@}, {labels_read} FROM {source} s WHERE {s_is_among}$sql$ USING {each keys_#} LOOP
        place := array_position(keys, {row key_#});
        RETURN NEXT;
    END LOOP;
END
$body$;

-- foh: function pull, if distributed, called by updaters
-- Moves what waits in the inbox into the stream, in two steps, each a transaction of the caller's: the first writes entries with their bits
-- to the stream, the second, given what the first returned, deletes them from the inbox. Between the two a key is in both, which is
-- harmless; it is never in neither. The rows are read after the entries, so that each is at least as new as its entry. keys_only: leave
-- the bits out, for a caller that reads all rows afterwards anyway.
CREATE OR REPLACE FUNCTION {self}(most int, keys_only boolean DEFAULT false) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    entries uuid[];
    {each keys_# ~[];}
    keys {key_type}[];
    marked boolean;
BEGIN
    PERFORM foh._open({tables_text});
    PERFORM {record_shards}();
    SELECT array_agg(i.entry), {each array_agg(i.k#) FILTER (WHERE i.op IN ('n', 'd'))}, bool_or(i.op NOT IN ('n', 'd')) INTO entries, {each keys_#}, marked
    FROM (SELECT i.entry, {each i.k#}, i.op FROM {inbox} i LIMIT most) i;
    keys := ARRAY(SELECT DISTINCT {row u.k#} FROM (SELECT {each pg_catalog.unnest(keys_#) AS k#}) u);
    IF marked THEN
        INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
    END IF;
    IF keys_only THEN
        INSERT INTO {stream} (key, op, version, center) SELECT unnest(keys), 'u', 0, 0;
    ELSIF keys <> '{}' THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh{included , included_#})
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh{included , v.included_#}
        FROM (SELECT k.key, w.x, w.labels{included , w.included_#} FROM (SELECT unnest(keys) AS key) k
              LEFT JOIN {rows}(keys => keys) w ON w.key = k.key OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, true) r;
    END IF;
    RETURN coalesce(entries, '{}');
END
$body$;

-- foh: function pulled, if distributed, called by updaters
-- The second step of a pull: deletes entries that are committed in the stream from the inbox.
CREATE OR REPLACE FUNCTION {self}(entries uuid[]) RETURNS void
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
