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
    -- The state of the index must be looked at more closely.
    odd boolean;
    -- The oldest version in the stream; null where nothing waits there.
    oldest bigint;
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
    SELECT i.version, m.learned, m.scale, e.code, (SELECT t.version FROM {stream} t ORDER BY t.version LIMIT 1),
           i.status <> 'ready' OR NOT m.trained OR NOT (foh._intact_in_plan({id}, '{source_oid}') OR {source_intact}),
           ARRAY(SELECT c.center FROM {nearest}(e.code, e.unit, m.scale, probes) c)
    INTO present, learned, scale, code, oldest, odd, centers
    FROM foh.index i
    JOIN foh.model m ON m.index = i.id AND m.version = i.version
    CROSS JOIN (SELECT coalesce(code, (SELECT bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) FROM {projection} p),
                                {zeros}) AS code, {query_to_center} AS unit OFFSET 0) e
    WHERE i.id = {id};
    exhausted := cardinality(centers) < probes;
    -- Rows that were encoded before there were centers.
    IF cardinality(centers) = 0 THEN
        centers := ARRAY[0];
    END IF;
    -- All that is out of the ordinary in the stream is of an older version: entries without a code, truncations, resyncs
    -- (version 0), and entries that waited, or were not committed, at the last switch.
    IF odd OR oldest < present THEN
        SELECT s.truncated, s.fallback INTO truncated, fallback FROM {state}() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    -- Apart, since an expression with a query in it is run even where again is false.
    IF again THEN
        IF 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
            -- A third of the lists, with a lookup for each entry: to read the source is cheaper.
            exhausted := true;
            RETURN;
        END IF;
    END IF;
    IF oldest IS NULL THEN
        SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
        FROM (SELECT e.key, trunc(e.distance)::int AS distance FROM {entries}(code, centers, n) e{entries_order} LIMIT n) f;
        RETURN;
    ELSIF oldest = present THEN
        -- Where each entry is the first of its key, and those who wrote them saw the lists as they are, no key is to be found
        -- twice. Where one replaces another, this finds nothing, and what follows does.
        -- A lookup for each center: before version 17 the planner might go in by the version alone, and read the whole stream.
        SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
        FROM (SELECT e.key, trunc(e.distance)::int AS distance
              FROM (SELECT l.key, l.distance FROM {entries}(code, centers, n) l
                    UNION ALL
                    SELECT t.key, t.code OPERATOR({vector}.<~>) code
                    FROM (SELECT unnest(centers) AS center) c
                    CROSS JOIN LATERAL (SELECT t.key, t.code FROM {stream} t
                                        WHERE t.version = present AND t.center = c.center AND t.op = 'u' OFFSET 0) t
                    ORDER BY 2 LIMIT n) e
              WHERE NOT EXISTS (SELECT FROM {stream} t WHERE NOT t.fresh)) f;
        IF keys IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    versions := ARRAY[present];
    IF oldest < present THEN
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
    SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
    FROM (SELECT e.key, trunc(e.distance)::int AS distance
          FROM (SELECT l.key, l.distance, 0::bigint AS seq FROM {entries}(code, centers, enough) l WHERE truncated = 0
                UNION ALL
                -- seq + 0: with some statistics the planner would go in by the primary key.
                SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq
                FROM (SELECT unnest(centers) AS center) c CROSS JOIN (SELECT unnest(versions) AS version) v
                CROSS JOIN LATERAL (SELECT t.key, t.code, t.seq FROM {stream} t
                                    WHERE t.version = v.version AND t.center = c.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t
                UNION ALL
                SELECT unnest(late_keys), unnest(late_distances), unnest(late_seqs)
                ORDER BY 2 LIMIT enough) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE e.distance IS NOT NULL AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND o.seq > e.seq OFFSET 0)
          LIMIT n) f;
END
$body$;
