-- The rows nearest to the query by distance and by labels, with the caller's rights on the source. filter is a condition over the columns
-- of the source, written by the application's author; values of its users go in through params, which the filter reads as
-- params ->> 'name'. labels, from 0 to 1, says how much the labels count: 0 asks for the nearest vectors and nothing else, 1 for the rows
-- likeliest to share a label. recall, up to 1, asks for so much of the exact answer; 1 reads the source itself. max_distance: no row
-- farther than that; fewer than k rows come back where there are fewer.
-- distance: that of the row from the query, by the index's metric; null where nothing was read from the source (shortlist 0). score: what
-- the rows are ordered by, the distance and what the labels add to it.
-- There is no SET search_path: the filter must see the functions that its author sees. So our own code
-- names every operator and function with its schema.
CREATE OR REPLACE FUNCTION {search}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                    filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL,
                                    recall float8 DEFAULT NULL, max_distance float8 DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 COST 10000
SET plan_cache_mode = force_generic_plan
-- The lookup by key is pinned: the plan may have been made when the table was empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    near pg_catalog.record;
    dial pg_catalog.float8 := {dial_factor}(labels);
    -- How many times k rows are looked at: where a filter is given, some rows do not pass it.
    times bigint := CASE WHEN filter IS NULL THEN 1 ELSE 4 END;
    more bigint;
    keys {key_type}[];
    distances pg_catalog.float8[];
    scores pg_catalog.float8[];
    -- How many rows the last look returned.
    returned int;
    -- How many rows within max_distance the look before returned.
    settled int;
BEGIN
    {refuse_arguments}
    near := {near}(query, k, probes, shortlist, recall, dial, times, false);
    IF near.fallback OPERATOR(pg_catalog.=) 'changed' THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    IF filter IS NOT NULL THEN
        -- The filter must fit between brackets here and between parentheses below. Text that closes one of them does not fit the
        -- other, so only a single expression passes.
        EXECUTE $sql$SELECT FROM (SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT ARRAY[
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            ]::boolean[] FROM {source} s WHERE false) s$sql$ USING params;
    END IF;
    WHILE near.fallback IS NULL LOOP
        IF filter IS NOT NULL THEN
            EXECUTE $sql$
                SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score)
                FROM (SELECT d.key, CASE WHEN d.bits IS NULL THEN d.distance END AS distance,
                             {score}(CASE WHEN d.bits IS NULL THEN d.distance OPERATOR(pg_catalog./) $8 ELSE {bit_score}(d.bits) END, d.lean) AS score
                      FROM (SELECT e.key, e.bits, e.lean, {exact_distance}(s.x, $1) AS distance
                            FROM (SELECT $2 AS params, pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS bits, pg_catalog.unnest($5) AS lean) e
                            CROSS JOIN LATERAL (SELECT {to_vector} AS x FROM {source} s WHERE s.{key} OPERATOR(pg_catalog.=) e.key AND (
                                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
                            ) OFFSET 0) s
                            WHERE s.x IS NOT NULL OFFSET 0) d
                      WHERE $6 IS NULL OR d.distance OPERATOR(pg_catalog.<=) $6
                      ORDER BY 3 LIMIT $7) t$sql$
                INTO keys, distances, scores
                USING query, params, near.keys, CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.bits END, near.leans, max_distance, k,
                      CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.scale ELSE 1::pg_catalog.float8 END;
        ELSIF near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN
            -- Usually the caller can see all rows that were found: one check covers them all.
            RETURN QUERY SELECT e.key, NULL::pg_catalog.float8, {score}({bit_score}(e.bits), e.lean)
                         FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.bits) AS bits, pg_catalog.unnest(near.leans) AS lean) e
                         WHERE pg_catalog.cardinality(near.keys) OPERATOR(pg_catalog.=) k AND pg_catalog.array_position(near.bits, NULL) IS NULL
                           AND NOT EXISTS (SELECT FROM (SELECT pg_catalog.unnest(near.keys) AS key) q
                                           WHERE NOT EXISTS (SELECT FROM {source} s WHERE s.{key} OPERATOR(pg_catalog.=) q.key OFFSET 0));
            IF FOUND THEN
                RETURN;
            END IF;
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT d.key, d.distance, {score}(coalesce(d.distance OPERATOR(pg_catalog./) near.scale, {bit_score}(d.bits)), d.lean) AS score
                  FROM (SELECT e.key, e.bits, e.lean, CASE WHEN e.bits IS NULL THEN {exact_distance}(s.x, query) END AS distance
                        FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.bits) AS bits, pg_catalog.unnest(near.leans) AS lean) e
                        CROSS JOIN LATERAL (SELECT CASE WHEN e.bits IS NULL THEN {to_vector} END AS x FROM {source} s WHERE s.{key} OPERATOR(pg_catalog.=) e.key OFFSET 0) s
                        WHERE e.bits IS NOT NULL OR s.x IS NOT NULL OFFSET 0) d
                  ORDER BY 3 LIMIT k) t;
        ELSE
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT d.key, d.distance, {score}(d.distance, d.lean) AS score
                  FROM (SELECT e.key, e.lean, {exact_distance}(s.x, query) AS distance
                        FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.leans) AS lean) e
                        CROSS JOIN LATERAL (SELECT {to_vector} AS x FROM {source} s WHERE s.{key} OPERATOR(pg_catalog.=) e.key OFFSET 0) s
                        WHERE s.x IS NOT NULL OFFSET 0) d
                  WHERE max_distance IS NULL OR d.distance OPERATOR(pg_catalog.<=) max_distance
                  ORDER BY 3 LIMIT k) t;
        END IF;
        returned := coalesce(pg_catalog.cardinality(keys), 0);
        IF returned OPERATOR(pg_catalog.=) k OR returned OPERATOR(pg_catalog.=) settled THEN
            RETURN QUERY SELECT pg_catalog.unnest(keys), pg_catalog.unnest(distances), pg_catalog.unnest(scores);
            RETURN;
        END IF;
        EXIT WHEN near.exhausted;
        IF max_distance IS NULL THEN
            -- Rows are missing: deleted, hidden by a policy or by the filter, or in other lists. The share of rows that passed
            -- says how many more to read.
            more := greatest(4, (3::bigint OPERATOR(pg_catalog.*) k) OPERATOR(pg_catalog./) greatest(2 OPERATOR(pg_catalog.*) returned, 1));
        ELSE
            -- Or there are no more within that distance: a look at four times as much that finds none says so. A filter that let
            -- nothing pass says nothing about the distance.
            more := 4;
            settled := CASE WHEN filter IS NULL OR returned OPERATOR(pg_catalog.>) 0 THEN returned END;
        END IF;
        times := least(times OPERATOR(pg_catalog.*) more, 10000000);
        near := {near}(query, k, least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int, shortlist, recall, dial, times, true);
    END LOOP;
    RETURN QUERY SELECT (r.f).* FROM (SELECT {exact}(query, k, coalesce(filter, 'true'), params, max_distance) AS f) r;
END
$body$;
