-- The step of a search that reads our tables: the keys of the rows that are nearest in both senses, in the lists and the
-- stream entries of the nearest centers. Either the vector or its bits are given. One row of arrays: one call, one snapshot.
-- First the geometry bits choose well more than are wanted. Then the labels take part: a signature bit has a chance to be
-- one of the query's, from a linear model of the labels and from the rows that are nearest; a row has the chance that any of
-- its bits is one, and a row without labels the mean chance of the labels of the nearest rows.
-- labels: the dial, as a factor of the learned weights; 0 leaves the labels out. again: an earlier call with fewer probes did
-- not find enough. distances are null for keys that must be read from the source. leans: what the labels add to a distance.
CREATE OR REPLACE FUNCTION {near}(vector {vector}.vector, bits bit, k int, INOUT probes int, shortlist int, labels float8, again boolean,
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
    -- The state of the index must be looked at more closely.
    odd boolean;
    -- Whether an entry of the stream may replace one of a list or of the stream.
    replaced boolean;
    truncated bigint := 0;
    unplaced {key_type}[];
    centers int[];
    query_geometry bit({geometry_bits});
    query_marks bit({mark_bits});
    projections {vector}.vector;
    weight_code float8;
    weight_linear float8;
    weight_votes float8;
    weight_labels float8;
    share_linear float8;
    wanted int;
    -- How many the second look is on, and keys to read for these: some may have been replaced.
    looked bigint;
    -- The linear model of the labels is one of rows at distance one from the mean.
    per_length float8;
BEGIN
    {look_up}
    IF odd THEN
        SELECT s.truncated, s.unplaced, s.fallback INTO truncated, unplaced, fallback FROM {state}() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
        -- A build may have read the row of such an entry while the entry stayed, even one that was the first of its key.
        replaced := replaced OR cardinality(unplaced) > 0;
    END IF;
    wanted := least(greatest(k, ranked), 10000000);
    -- Apart, since an expression with a query in it is run even where again is false.
    IF again THEN
        IF 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
            -- A third of the lists, with a lookup for each entry: to read the source is cheaper.
            exhausted := true;
            RETURN;
        END IF;
    END IF;
    exhausted := cardinality(centers) < probes;
    weight_labels := weight_linear + weight_votes;
    looked := CASE WHEN weight_code + weight_labels = 0 THEN wanted ELSE greatest({looked}, 2 * wanted::bigint) END;
    IF weight_code + weight_labels > 0 THEN
        share_linear := CASE WHEN weight_labels > 0 THEN weight_linear / weight_labels ELSE 0 END;
        {second_look}
    ELSE
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
