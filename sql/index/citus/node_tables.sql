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
