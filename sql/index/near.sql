-- The step of a search that reads our tables: the n keys nearest by Hamming distance in the lists and the stream rows
-- of the nearest centers. Either the vector or its code is given. One row of arrays: one call, one snapshot.
-- again: an earlier call with fewer probes did not find enough.
-- The newest stream entry of a key wins over all others.
CREATE OR REPLACE FUNCTION {near}(vector {vector}.vector, INOUT code bit, probes int, n int, again boolean DEFAULT false,
                                  OUT keys {key_type}[], OUT distances int[], OUT exhausted boolean, OUT scale float8, OUT fallback text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
-- The shape of the plans is pinned: they may have been made when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    present bigint;
    -- The version whose hash functions the present one has.
    learned bigint;
    odd boolean;
    -- Nothing waits in the stream.
    still boolean;
    truncated bigint := 0;
    centers int[];
    -- Whose stream entries are read with their centers.
    versions bigint[];
    -- Keys to read for n that are wanted: some have a newer entry.
    enough bigint := n::bigint + n / 8 + 16;
    encoded bigint;
    known bigint;
    -- Entries that are read whatever their center.
    late_keys {key_type}[];
    late_distances float8[];
    late_seqs bigint[];
BEGIN
    -- All that is out of the ordinary is of an older version: entries without a code, truncations, resyncs (version 0), and
    -- entries that waited, or were not committed, at the last switch.
    -- The codes choose well more centers than are wanted, the embedding, where there is one, among them.
    SELECT i.version, m.learned, m.scale, e.code, NOT EXISTS (SELECT FROM {stream}),
           i.status <> 'ready' OR NOT m.trained OR NOT ({source_intact}) OR EXISTS (SELECT FROM {stream} t WHERE t.version < i.version),
           ARRAY(SELECT n.center
                 FROM (SELECT c.center, g.distance / {bits} + coalesce({blend} * {query_center_distance}, 0) AS score
                       FROM (SELECT g.centers, g.code OPERATOR({vector}.<~>) e.code AS distance FROM {center_code} g ORDER BY 2) g
                       CROSS JOIN LATERAL (SELECT c.center, c.embedding FROM {center} c WHERE c.center = ANY (g.centers) OFFSET 0) c
                       LIMIT greatest(32, 8 * probes::bigint)) n
                 ORDER BY n.score LIMIT probes)
    INTO present, learned, scale, code, still, odd, centers
    FROM foh.index i
    JOIN foh.model m ON m.index = i.id AND m.version = i.version
    CROSS JOIN (SELECT coalesce(code, (SELECT bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) FROM {projection} p),
                                {zeros}) AS code, {query_to_center} AS unit OFFSET 0) e
    WHERE i.id = {id};
    versions := ARRAY[present];
    exhausted := cardinality(centers) < probes;
    -- Rows that were encoded before there were centers.
    IF cardinality(centers) = 0 THEN
        centers := ARRAY[0];
    END IF;
    IF odd THEN
        SELECT s.truncated, s.fallback INTO truncated, fallback FROM {state}() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
        -- A handful of other hash functions is encoded on the way. More would take longer than the rest of the search, and
        -- keep the codes they have.
        SELECT CASE WHEN count(*) > 20 THEN 1 ELSE learned END INTO encoded FROM (SELECT FROM {stream} t WHERE t.version < learned LIMIT 21) o;
        known := greatest(encoded, present - {gone_versions});
        -- From one version to the next, without reading their entries.
        WITH RECURSIVE v AS (
            SELECT present AS version
            UNION ALL
            SELECT (SELECT t.version FROM {stream} t WHERE t.version >= known AND t.version < v.version ORDER BY t.version DESC LIMIT 1)
            FROM v WHERE v.version IS NOT NULL
        )
        SELECT array_agg(v.version) INTO versions FROM v WHERE v.version IS NOT NULL;
        SELECT array_agg(d.key), array_agg(d.distance), array_agg(d.seq) INTO late_keys, late_distances, late_seqs
        FROM (SELECT t.key, coalesce(h.distance, t.code OPERATOR({vector}.<~>) code) AS distance, t.seq
              FROM {stream} t LEFT JOIN LATERAL {hamming}(ARRAY[t.key], code) h ON true
              WHERE t.version < encoded AND t.op = 'u' AND t.seq + 0 > truncated
              UNION ALL
              SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq FROM {stream} t
              WHERE t.version >= encoded AND t.version < known AND t.op = 'u' AND t.seq + 0 > truncated
              UNION ALL
              SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq
              FROM unnest(versions) AS v (version)
              CROSS JOIN LATERAL (SELECT g.center FROM {gone} g WHERE g.version > v.version UNION ALL SELECT 0) g
              CROSS JOIN LATERAL (SELECT t.key, t.code, t.seq FROM {stream} t
                                  WHERE t.version = v.version AND t.center = g.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t
              WHERE g.center <> ALL (centers)
              ORDER BY 2 LIMIT enough) d;
    END IF;
    IF again AND 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
        -- A third of the lists, with a lookup for each entry: to read the source is cheaper.
        exhausted := true;
        RETURN;
    END IF;
    -- Codes tie a lot: each run of equal codes is compared once, and among equals, those in the list of the nearer
    -- center come first. Of the nearest runs, as many are unfolded as hold enough keys.
    SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
    FROM (SELECT e.key, trunc(e.distance)::int AS distance
          FROM ({distinct_open}SELECT unnest(g.ids[g.first:g.last]) AS key, g.distance, 0::bigint AS seq
                FROM (SELECT u.ids, u.first, u.last, (u.code OPERATOR({vector}.<~>) code) + u.rank AS distance
                      FROM (SELECT l.ids, l.rank, unnest(l.runs) AS code, unnest(l.starts) AS first, unnest(l.ends) AS last
                            FROM (SELECT l.ids, l.runs, l.starts, l.ends, array_position(centers, l.center) / (probes + 1.0::float8) AS rank
                                  FROM {list} l WHERE l.center = ANY (centers) AND truncated = 0 OFFSET 0) l) u
                      ORDER BY 4 LIMIT {unfolded}) g
                LIMIT {unfolded}{distinct_close}
                UNION ALL
                -- seq + 0, and a lookup for each center: with some statistics the planner would go in by the primary key, or before
                -- version 17 by the version alone, and read the whole stream.
                SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq
                FROM unnest(centers) AS c (center) CROSS JOIN unnest(versions) AS v (version)
                CROSS JOIN LATERAL (SELECT t.key, t.code, t.seq FROM {stream} t
                                    WHERE t.version = v.version AND t.center = c.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t
                WHERE NOT still
                UNION ALL
                SELECT unnest(late_keys), unnest(late_distances), unnest(late_seqs)
                ORDER BY 2 LIMIT enough) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE e.distance IS NOT NULL AND (still OR NOT EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND o.seq > e.seq OFFSET 0))
          LIMIT n) f;
END
$body$;
