-- On every node, beside the table and colocated with it: the keys that were written and that no pull has taken yet. A trigger on a shard
-- of the table writes to the shard of the inbox with the same range, in the same transaction, and asks no other node.
-- op: n(ote), t(runcate), r(esync: the key column is not what it was).
CREATE TABLE {inbox} (
    key        {key_type} NOT NULL,
    entry      uuid NOT NULL DEFAULT gen_random_uuid(),
    op         "char" NOT NULL DEFAULT 'n',
    written_at timestamptz NOT NULL DEFAULT now(),
    -- A shard that moves under writes is replicated by its primary key.
    PRIMARY KEY (key, entry)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- A key for each shard: a statement about it is sent to the node where that shard is now.
CREATE TABLE {token} (key {key_type} NOT NULL PRIMARY KEY);
GRANT SELECT ON {token} TO PUBLIC;
SELECT create_distributed_table({inbox_text}, 'key', colocate_with => {source_text});
SELECT create_distributed_table({token_text}, 'key', colocate_with => {source_text});
