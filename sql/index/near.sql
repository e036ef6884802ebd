-- The step of a search that reads our tables: the n keys nearest by Hamming distance in the lists and the stream rows
-- of the nearest centers. Either the vector or its code is given. One row of arrays: one call, one snapshot.
-- again: an earlier call with fewer probes did not find enough.
-- The newest stream entry of a key wins over all others; entries of an older version are read wherever they are.
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
    odd boolean;
    truncated bigint := 0;
    deferred boolean := false;
    centers int[];
    enough bigint;
    -- Rows that wait without a code, encoded on the way.
    late_keys {key_type}[];
    late_distances int[];
    late_seqs bigint[];
BEGIN
    -- All that is out of the ordinary is at version 0: entries without a code, truncations, resyncs.
    SELECT i.version, m.scale,
           i.status <> 'ready' OR NOT m.trained OR NOT ({source_intact}) OR EXISTS (SELECT FROM {stream} t WHERE t.version = 0)
    INTO present, scale, odd
    FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version WHERE i.id = {id};
    IF odd THEN
        SELECT s.truncated, s.deferred, s.fallback INTO truncated, deferred, fallback FROM {state}() s;
    END IF;
    IF code IS NULL THEN
        code := coalesce((SELECT bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) FROM {projection} p),
                         {zeros});
    END IF;
    IF fallback IS NOT NULL THEN
        RETURN;
    ELSIF again AND 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
        -- A third of the lists, with a lookup for each entry: to read the source is cheaper.
        exhausted := true;
        RETURN;
    ELSIF vector IS NULL THEN
        centers := ARRAY(SELECT c.center FROM {center} c ORDER BY c.code OPERATOR({vector}.<~>) code LIMIT probes);
    ELSE
        -- The codes choose well more centers than are wanted, the embedding among them.
        centers := ARRAY(SELECT c.center
                         FROM (SELECT c.center, c.code OPERATOR({vector}.<~>) code AS distance
                               FROM {center} c ORDER BY 2 LIMIT greatest(32, 8 * probes::bigint)) n
                         JOIN {center} c ON c.center = n.center
                         CROSS JOIN (SELECT {query_to_center} AS unit OFFSET 0) q
                         ORDER BY n.distance / {bits} + {blend} * {query_center_distance} LIMIT probes);
    END IF;
    exhausted := cardinality(centers) < probes;
    -- Rows that were encoded before there were centers.
    IF cardinality(centers) = 0 THEN
        centers := ARRAY[0];
    END IF;
    IF deferred THEN
        SELECT array_agg(d.key), array_agg(d.distance), array_agg(d.seq) INTO late_keys, late_distances, late_seqs
        FROM (SELECT t.key, h.distance, t.seq FROM {stream} t CROSS JOIN LATERAL {hamming}(ARRAY[t.key], code) h
              WHERE t.version = 0 AND t.op = 'u' AND t.seq + 0 > truncated) d;
    END IF;
    -- Codes tie a lot: each run of equal codes is compared once, and among equals, those in the list of the nearer
    -- center come first. Of the nearest runs, as many are unfolded as hold enough keys.
    enough := n::bigint + n / 8 + 16;
    SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
    FROM (SELECT e.key, trunc(e.distance)::int AS distance
          FROM ({distinct_open}SELECT unnest(g.ids[g.first:g.last]) AS key, g.distance, 0::bigint AS seq
                FROM (SELECT r.ids, r.first, r.last, r.distance,
                             sum(r.last - r.first + 1) OVER (ORDER BY r.distance ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                      FROM (SELECT u.ids, u.first, u.last, (u.code OPERATOR({vector}.<~>) code) + c.rank AS distance
                            FROM (SELECT o.center, o.at / (probes + 1.0::float8) AS rank FROM unnest(centers) WITH ORDINALITY AS o (center, at)) c
                            CROSS JOIN LATERAL (SELECT l.ids, unnest(l.runs) AS code, unnest(l.starts) AS first, unnest(l.ends) AS last
                                                FROM {list} l WHERE l.center = c.center AND truncated = 0) u
                            ORDER BY 4 LIMIT enough) r) g
                WHERE coalesce(g.before, 0) < enough{distinct_close}
                UNION ALL
                -- seq + 0, and a lookup for each center: with some statistics the planner would go in by the primary key, or before
                -- version 17 by the version alone, and read the whole stream.
                SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq
                FROM unnest(centers) AS c (center)
                CROSS JOIN LATERAL (SELECT t.key, t.code, t.seq FROM {stream} t
                                    WHERE t.version = present AND t.center = c.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t
                UNION ALL
                SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq FROM {stream} t
                WHERE t.version < present AND t.op = 'u' AND t.seq + 0 > truncated
                UNION ALL
                SELECT unnest(late_keys), unnest(late_distances)::float8, unnest(late_seqs)
                ORDER BY 2 LIMIT enough) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE e.distance IS NOT NULL AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND o.seq > e.seq OFFSET 0)
          LIMIT n) f;
END
$body$;
