-- What a search compares before and after it has asked the nodes, and where the shards are. If version, last and placements have not
-- changed, no pull has taken anything out of the inbox and no shard has moved in between. Numbers of placements only grow, so their sum
-- grows with every move. whole: all shards are known. The arrays have a place for each shard, in the order of the hashes of their keys.
CREATE OR REPLACE FUNCTION {moment}(OUT version bigint, OUT last bigint, OUT placements numeric, OUT whole boolean,
                                    OUT shards bigint[], OUT inboxes bigint[], OUT tokens {key_type}[], OUT firsts int[], OUT nodes int[])
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    SELECT i.version, (SELECT t.seq FROM {stream} t ORDER BY t.seq DESC LIMIT 1), p.placements,
           cardinality(p.shards) = (SELECT count(*) FROM pg_dist_shard d WHERE d.logicalrelid = {source_oid}::oid::regclass),
           p.shards, p.inboxes, p.tokens, p.firsts, p.nodes
    INTO version, last, placements, whole, shards, inboxes, tokens, firsts, nodes
    FROM foh.index i,
         (SELECT sum(p.placementid) AS placements, array_agg(p.shard) AS shards, array_agg(p.inbox) AS inboxes, array_agg(p.token) AS tokens,
                 array_agg(p.first) AS firsts, array_agg(p.groupid) AS nodes
          FROM (SELECT s.*, p.placementid, p.groupid FROM {shard} s JOIN pg_dist_placement p ON p.shardid = s.shard AND p.shardstate = 1 ORDER BY s.first) p) p
    WHERE i.id = {id};
END
$body$;
