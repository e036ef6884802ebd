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
           + count(*) FILTER (WHERE a.attname IS NOT DISTINCT FROM {labels_text}::name) * 4 INTO columns
    FROM pg_attribute a WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped;
    IF columns & 1 = 0 THEN
        EXECUTE format('INSERT INTO %s (key, op) VALUES (%L, ''r'')', inbox, {key_zero});
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE format('INSERT INTO %s (key, op) SELECT o.%I, ''d'' FROM old_rows o', inbox, {key_text});
    ELSIF TG_OP = 'INSERT' AND columns & 2 = 2 THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ (key, op, x) SELECT s.key, CASE WHEN s.x IS NULL THEN 'd' ELSE 'n' END, {unit}(s.x){center_cast}
                                                 FROM (SELECT s.{key} AS key, {to_vector} AS x FROM new_rows s OFFSET 0) s$sql$;
    ELSIF TG_OP = 'INSERT' THEN
        EXECUTE format('INSERT INTO %s (key) SELECT n.%I FROM new_rows n', inbox, {key_text});
    ELSIF columns = {columns_expected} THEN
        EXECUTE 'INSERT INTO ' || inbox || $sql$ (key, op, x) SELECT s.key, CASE WHEN s.x IS NULL THEN 'd' ELSE 'n' END, {unit}(s.x){center_cast}
                                                 FROM (SELECT coalesce(s.{key}, o.{key}) AS key, {to_vector} AS x FROM new_rows s FULL JOIN old_rows o ON o.{key} = s.{key}
                                                       WHERE s.{key} IS NULL OR o.{key} IS NULL OR {changed} OFFSET 0) s$sql$;
    ELSE
        EXECUTE format('INSERT INTO %1$s (key) SELECT n.%2$I FROM new_rows n UNION SELECT o.%2$I FROM old_rows o', inbox, {key_text});
    END IF;
    RETURN NULL;
END
$body$;
