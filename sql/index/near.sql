-- The step of a search that reads our tables: the n keys nearest by Hamming distance in the lists and the stream rows
-- of the nearest centers. Either the vector or its code is given. One row of arrays: one call, one snapshot.
-- The newest stream entry of a key wins over all others; entries of an older version are read wherever they are.
CREATE OR REPLACE FUNCTION {near}(vector {vector}.vector, INOUT code bit, probes int, n int, OUT keys {key_type}[], OUT distances int[],
                                  OUT exhausted boolean, OUT scale float8, OUT fallback text)
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
    truncated bigint;
    centers int[];
BEGIN
    SELECT s.version, s.truncated, s.scale, s.fallback INTO present, truncated, scale, fallback FROM {state}() s;
    IF code IS NULL THEN
        code := coalesce((SELECT bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) FROM {projection} p),
                         {zeros});
    END IF;
    IF fallback IS NOT NULL THEN
        RETURN;
    ELSIF vector IS NULL THEN
        centers := ARRAY(SELECT c.center FROM {center} c ORDER BY c.code OPERATOR({vector}.<~>) code LIMIT probes);
    ELSE
        centers := ARRAY(SELECT c.center FROM {center} c CROSS JOIN (SELECT {query_to_center} AS unit OFFSET 0) q
                         ORDER BY (c.code OPERATOR({vector}.<~>) code) / {bits} + {blend} * {query_center_distance} LIMIT probes);
    END IF;
    exhausted := cardinality(centers) < probes;
    -- Rows that were encoded before there were centers.
    IF cardinality(centers) = 0 THEN
        centers := ARRAY[0];
    END IF;
    SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
    FROM (SELECT e.key, e.distance::int AS distance
          FROM (SELECT {distinct_entry} u.key, u.code OPERATOR({vector}.<~>) code AS distance, 0::bigint AS seq
                FROM (SELECT unnest(l.ids) AS key, unnest(l.codes) AS code FROM {list} l
                      WHERE l.center = ANY (centers) AND truncated = 0) u
                UNION ALL
                SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq FROM {stream} t
                WHERE t.version = present AND t.center = ANY (centers) AND t.op = 'u' AND t.seq > truncated
                UNION ALL
                SELECT t.key, coalesce(t.code, (SELECT p.code FROM {place}(ARRAY[t.key]) p)) OPERATOR({vector}.<~>) code, t.seq
                FROM {stream} t WHERE t.version < present AND t.op = 'u' AND t.seq > truncated
                ORDER BY 2 LIMIT n + n / 8 + 16) e
          WHERE e.distance IS NOT NULL AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND o.seq > e.seq)
          LIMIT n) f;
END
$body$;
