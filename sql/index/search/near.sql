-- The step of a search that reads our tables: the keys of the rows that are nearest by distance and by labels, in the lists
-- and the stream entries of the nearest centers. One row of arrays: one call, one snapshot.
-- First the geometry bits choose well more than are wanted. Then the nearest of them vote what kind of row the query is, and rows
-- that are known to be of another kind are put back (see fragment_second_look).
-- recall: the share of the nearest rows that a search is to find; the model knows how much must be read for it. dial: a
-- factor of the learned weight; 0 leaves the labels out. times: how many times k keys to return, since some rows will not pass the
-- filter. again: an earlier call with fewer probes did not find enough. bits: how many geometry bits differ; null for keys that must
-- be read from the source. leans: by how many times its distance a row is put back. scale: what a distance is divided by to compare
-- with an estimate from bits.
CREATE OR REPLACE FUNCTION {near}(vector {vector}.vector, k int, INOUT probes int, shortlist int, recall float8, dial float8, times bigint,
                                  again boolean, OUT keys {key_type}[], OUT bits int[], OUT leans float8[], OUT ranked int, OUT exhausted boolean,
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
    -- How much the learned code counts beside the bits in the choice of voters, and by how many times its distance a row of another
    -- kind than the query is put back.
    weight_code float8;
    lean float8;
    wanted int;
    -- How many of the nearest rows by geometry bits are kept, for the second look where there is one.
    looked bigint;
BEGIN
    -- Planning is the largest cost of the first search of a connection. So a constant has the type of what it is compared with: otherwise
    -- PostgreSQL would try all operators of that name. LEAST and GREATEST compare as float8, whose operators the ORDER BY needs anyway.
    -- One statement for all that does not depend on the answer: the state of the index, the weights, the bits of the query and
    -- the nearest centers. What is needed twice stands in a subquery of its own.
    SELECT {scale_of_scores}, m.status <> 'ready' OR m.small OR NOT foh._intact_in_plan({recorded})
               OR m.has_far OR EXISTS (SELECT FROM {stream} t WHERE t.center < m.first_center),
           EXISTS (SELECT FROM {stream} t WHERE NOT t.fresh),
           m.ranked, m.probes, m.weight_code, m.lean, q.geometry, {signature_zeros}::varbit || coalesce(m.code, {zeros})::varbit,
           ARRAY(SELECT n.center FROM {nearest_centers}(q.geometry, m.probes) n)
    INTO scale, odd, replaced, ranked, probes, weight_code, lean, query_geometry, query_marks, centers
    FROM (SELECT m.status, m.scale, m.small, m.far IS NOT NULL AS has_far, m.first_center, m.lean, coalesce({weight_code}, m.weight_code) AS weight_code,
                 {probes_chosen} AS probes, {shortlist_chosen} AS ranked,
                 -- The condition on ctid makes PostgreSQL read the whole table without its index; sequential scans are off because of other tables.
                 (SELECT bit_or(p.mask) FROM {projection} p
                  WHERE m.lean > 0::float8 AND p.ctid >= '(0,0)' AND -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) AS code
          FROM (SELECT (SELECT i.status FROM foh.index i WHERE i.id = {id}) AS status, m.*, {lean_chosen} AS lean, {reach_chosen} AS reach
                FROM foh.model m WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id}) OFFSET 0) m OFFSET 0) m
    CROSS JOIN (SELECT {query_geometry} AS geometry FROM {quantizer} g OFFSET 0) q;
    IF odd THEN
        SELECT s.truncated, s.unplaced, s.fallback INTO truncated, unplaced, fallback FROM {state}() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
        -- Even an unplaced entry that was the first of its key may replace one of a list: a build may have read its row.
        replaced := replaced OR cardinality(unplaced) > 0;
    END IF;
    IF recall >= 1::float8 THEN
        fallback := 'asked';
        RETURN;
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
    IF lean > 0::float8 THEN
        looked := greatest({looked}, {looked_times}::float8 * wanted::float8);
        {second_look}
    ELSE
        looked := wanted;
        SELECT array_agg(f.key), array_agg(f.distance) INTO keys, bits
        FROM ({found}) f;
    END IF;
    IF unplaced IS NOT NULL THEN
        keys := unplaced || keys;
        bits := array_fill(NULL::int, ARRAY[cardinality(unplaced)]) || bits;
        -- Nobody knows yet of what kind these rows are.
        leans := array_fill(0::float8, ARRAY[cardinality(unplaced)]) || leans;
    END IF;
END
$body$;
