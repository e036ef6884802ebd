-- The nodes that have shards of the table: a key that leads to the node, and its shards.
CREATE OR REPLACE FUNCTION {nodes}() RETURNS TABLE (token {key_type}, shards bigint[], inboxes bigint[])
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 4
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    RETURN QUERY SELECT (array_agg(s.token))[1], array_agg(s.shard), array_agg(s.inbox)
                 FROM {shard} s JOIN pg_dist_placement p ON p.shardid = s.shard AND p.shardstate = 1 GROUP BY p.groupid;
END
$body$;
