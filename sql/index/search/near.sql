-- The step of a search that reads our tables: the keys of the rows that are nearest by distance and by labels, in the lists
-- and the stream entries of the nearest centers. One row of arrays: one call, one snapshot.
-- First the geometry bits choose well more than are wanted. Then the labels take part: by the learned code, which leans on
-- the labels of a stored row and guesses those of the query, and by the labels of the nearest rows, which vote.
-- labels: the dial, as a factor of the learned weights; 0 leaves the labels out. times: how many times k keys to return, since
-- some rows will not pass the filter. again: an earlier call with fewer probes did not find enough. distances: null for keys that
-- must be read from the source. leans: what the labels add to a distance.
CREATE OR REPLACE FUNCTION {near}(vector {vector}.vector, k int, INOUT probes int, shortlist int, labels float8, times bigint, again boolean,
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
SET enable_memoize = off
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
    -- Planning is the largest cost of the first search of a connection. So a constant has the type of what it is compared with: otherwise
    -- PostgreSQL would try all operators of that name. LEAST and GREATEST compare as float8, whose operators the ORDER BY needs anyway.
    -- One statement for all that does not depend on the answer: the state of the index, the weights, the bits of the query and
    -- the nearest centers. The weights and the learned code stand in a subquery of their own because they are needed twice.
    SELECT m.scale, m.status <> 'ready' OR m.small OR NOT foh._intact_in_plan({recorded})
               OR EXISTS (SELECT FROM {stream} t WHERE t.center < m.first_center),
           EXISTS (SELECT FROM {stream} t WHERE NOT t.fresh),
           coalesce(shortlist, {shortlist_option}, m.shortlist,
                    CASE WHEN m.weight_code + m.weight_votes = 0::float8 THEN {shortlist_nearest} ELSE {shortlist_default} END),
           m.probes, m.weight_code, m.weight_votes, q.geometry, {signature_zeros}::varbit || coalesce(m.code, {zeros})::varbit,
           ARRAY(SELECT n.center FROM {nearest_centers}(q.geometry, m.probes) n)
    INTO scale, odd, replaced, ranked, probes, weight_code, weight_votes, query_geometry, query_marks, centers
    FROM (SELECT (SELECT i.status FROM foh.index i WHERE i.id = {id}) AS status, m.scale, m.small, m.first_center, m.shortlist,
                 coalesce(probes, {probes_option}, m.probes, {probes_default}) AS probes,
                 labels * coalesce({weight_code}, m.weight_code) AS weight_code, labels * coalesce({weight_votes}, m.weight_votes) AS weight_votes,
                 -- The condition on ctid makes PostgreSQL read the whole table without its index; sequential scans are off because of other tables.
                 (SELECT bit_or(p.mask) FROM {projection} p
                  WHERE {needs_code} AND p.ctid >= '(0,0)' AND -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) AS code
          FROM foh.model m WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id}) OFFSET 0) m
    CROSS JOIN (SELECT {query_geometry} AS geometry FROM {quantizer} g OFFSET 0) q;
    IF odd THEN
        SELECT s.truncated, s.unplaced, s.fallback INTO truncated, unplaced, fallback FROM {state}() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
        -- Even an unplaced entry that was the first of its key may replace one of a list: a build may have read its row.
        replaced := replaced OR cardinality(unplaced) > 0;
    END IF;
    wanted := least(CASE WHEN again THEN greatest(k::float8, ranked) * times::float8 ELSE greatest((k * times)::float8, ranked) END, 1e7);
    -- Two nested IFs: PL/pgSQL would run a condition that contains a query even where again is false.
    IF again THEN
        IF 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
            -- To read the source is cheaper than a third of the lists, with a lookup for each entry.
            exhausted := true;
            RETURN;
        END IF;
    END IF;
    exhausted := cardinality(centers) < probes;
    IF weight_code + weight_votes > 0::float8 THEN
        looked := greatest({looked}, 2::float8 * wanted::float8);
        {second_look}
    ELSE
        looked := wanted;
        SELECT array_agg(f.key), array_agg(f.distance) INTO keys, distances
        FROM ({found}) f;
    END IF;
    IF unplaced IS NOT NULL THEN
        keys := unplaced || keys;
        distances := array_fill(NULL::int, ARRAY[cardinality(unplaced)]) || distances;
        leans := array_fill(coalesce((SELECT avg(l) FROM unnest(leans) l), 0), ARRAY[cardinality(unplaced)]) || leans;
    END IF;
END
$body$;
