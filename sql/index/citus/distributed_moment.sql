-- What a search compares before and after it has asked the nodes. If nothing here has changed, no pull has taken anything out of the inbox
-- and no shard has moved in between. Numbers of placements only grow, so their sum grows with every move. whole: all shards are known.
CREATE OR REPLACE FUNCTION {moment}(OUT version bigint, OUT last bigint, OUT placements numeric, OUT whole boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    SELECT i.version, (SELECT t.seq FROM {stream} t ORDER BY t.seq DESC LIMIT 1), p.placements,
           p.shards = (SELECT count(*) FROM pg_dist_shard d WHERE d.logicalrelid = {source_oid}::oid::regclass)
    INTO version, last, placements, whole
    FROM foh.index i,
         (SELECT sum(p.placementid) AS placements, count(*) AS shards FROM {shard} s JOIN pg_dist_placement p ON p.shardid = s.shard AND p.shardstate = 1) p
    WHERE i.id = {id};
END
$body$;
