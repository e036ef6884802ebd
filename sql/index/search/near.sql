-- The step of a search that reads our tables: the keys of the rows that are nearest by distance and by labels, in the lists
-- and the stream entries of the nearest centers. Either the vector or its bits are given. One row of arrays: one call, one snapshot.
-- First the geometry bits choose well more than are wanted. Then the labels take part: by the learned code, which leans on
-- the labels of a stored row and guesses those of the query, and by the labels of the nearest rows, which vote.
-- labels: the dial, as a factor of the learned weights; 0 leaves the labels out. times: how many times k keys to return, since
-- some rows will not pass the filter. again: an earlier call with fewer probes did not find enough. distances: null for keys that
-- must be read from the source. leans: what the labels add to a distance.
CREATE OR REPLACE FUNCTION {near}(vector {vector}.vector, bits bit, k int, INOUT probes int, shortlist int, labels float8, times bigint, again boolean,
                                  OUT keys {key_type}[], OUT distances int[], OUT leans float8[], OUT ranked int, OUT exhausted boolean,
                                  OUT scale float8, OUT fallback text)
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
    -- Whether the state of the index must be looked at more closely.
    odd boolean;
    -- Whether an entry of the stream may replace one of a list or of the stream.
    replaced boolean;
    truncated bigint := 0;
    unplaced {key_type}[];
    centers int[];
    query_geometry bit({geometry_bits});
    query_marks bit({mark_bits});
    weight_code float8;
    weight_votes float8;
    wanted int;
    -- How many of the nearest rows by geometry bits are kept, for the second look where there is one.
    looked bigint;
BEGIN
    -- One statement for all that does not depend on the answer: the state of the index, the weights, the bits of the query and
    -- the nearest centers.
    SELECT m.scale, i.status <> 'ready' OR m.small OR NOT foh._intact_in_plan({id}, '{source_oid}')
               OR EXISTS (SELECT FROM {stream} t WHERE t.center < m.first_center),
           EXISTS (SELECT FROM {stream} t WHERE NOT t.fresh),
           -- A query given as bits has no exact distance to rank a shortlist by.
           CASE WHEN vector IS NULL THEN 0
                ELSE coalesce(shortlist, {shortlist_option}, m.shortlist, CASE WHEN labels * {weights} = 0 THEN {shortlist_nearest} ELSE {shortlist_default} END) END,
           c.probes,
           c.weight_code, labels * coalesce({weight_votes}, m.weight_votes),
           CASE WHEN bits IS NULL THEN {query_geometry} ELSE substring(bits FROM 1 FOR {geometry_bits}) END,
           {signature_zeros} || CASE WHEN bits IS NULL THEN coalesce(p.code, {zeros}) ELSE substring(bits FROM {code_from}) END,
           CASE WHEN bits IS NULL THEN ARRAY(SELECT n.center FROM {nearest_centers}(q.unit, c.probes) n) END
    INTO scale, odd, replaced, ranked, probes, weight_code, weight_votes, query_geometry, query_marks, centers
    FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version
    CROSS JOIN LATERAL (SELECT coalesce(probes, {probes_option}, m.probes, {probes_default}) AS probes,
                               labels * coalesce({weight_code}, m.weight_code) AS weight_code OFFSET 0) c
    -- Every center is compared with the unit vector of the query, so it is computed once.
    CROSS JOIN (SELECT q.u, q.u{center_cast} AS unit FROM (SELECT {query_unit} AS u OFFSET 0) q OFFSET 0) q
    CROSS JOIN {quantizer} g
    -- The condition on ctid makes PostgreSQL read the whole table without its index; sequential scans are off because of other tables.
    CROSS JOIN LATERAL (SELECT bit_or(p.mask) AS code FROM {projection} p
                        WHERE bits IS NULL AND {needs_code} AND p.ctid >= '(0,0)'
                          AND -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) p
    WHERE i.id = {id};
    -- A query given as bits. A statement of its own, so that a search by vector does not pay for its plan.
    IF bits IS NOT NULL THEN
        centers := ARRAY(SELECT n.center FROM {centers_by_bits}(query_geometry, probes) n);
    END IF;
    IF odd THEN
        SELECT s.truncated, s.unplaced, s.fallback INTO truncated, unplaced, fallback FROM {state}() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
        -- Even an unplaced entry that was the first of its key may replace one of a list: a build may have read its row.
        replaced := replaced OR cardinality(unplaced) > 0;
    END IF;
    wanted := least(CASE WHEN again THEN greatest(k, ranked) * times ELSE greatest(k * times, ranked) END, 10000000);
    -- Two nested IFs: PL/pgSQL would run a condition that contains a query even where again is false.
    IF again THEN
        IF 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
            -- To read the source is cheaper than a third of the lists, with a lookup for each entry.
            exhausted := true;
            RETURN;
        END IF;
    END IF;
    exhausted := cardinality(centers) < probes;
    IF weight_code + weight_votes > 0 THEN
        looked := greatest({looked}, 2 * wanted::bigint);
        {second_look}
    ELSE
        looked := wanted;
        SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
        FROM ({found}) f;
    END IF;
    IF unplaced IS NOT NULL AND vector IS NULL THEN
        SELECT array_agg(h.key) || keys, array_agg(h.distance) || distances, array_fill(NULL::float8, ARRAY[count(*)::int]) || leans
        INTO keys, distances, leans FROM {hamming}(unplaced, query_geometry) h;
    ELSIF unplaced IS NOT NULL THEN
        keys := unplaced || keys;
        distances := array_fill(NULL::int, ARRAY[cardinality(unplaced)]) || distances;
        leans := array_fill(coalesce((SELECT avg(l) FROM unnest(leans) l), 0), ARRAY[cardinality(unplaced)]) || leans;
    END IF;
END
$body$;
