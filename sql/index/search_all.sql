-- A search without a filter, with the caller's rights on the source.
CREATE OR REPLACE FUNCTION {search_all}(query {vector}.vector, code bit, k int, probes int, shortlist int)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
-- The shape of the plan is pinned: it may have been made when the table was empty.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    p record;
    reach int := coalesce(probes, {probes});
    ranked int := coalesce(shortlist, {shortlist});
    wanted int;
    keys {key_type}[];
    distances int[];
    scores float8[];
BEGIN
    IF query IS NULL AND code IS NULL OR {vector}.vector_dims(query) <> {dimensions} OR coalesce(k, 0) < 1 OR reach < 1 OR ranked < 0 THEN
        PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, reach, ranked);
    END IF;
    wanted := greatest(k, ranked);
    LOOP
        SELECT * INTO p FROM {probe}(query, code, reach);
        EXIT WHEN p.fallback IS NOT NULL;
        IF ranked = 0 THEN
            SELECT array_agg(t.key), array_agg(t.distance), array_agg(t.distance::float8 / {bits}) INTO keys, distances, scores
            FROM (SELECT e.key, e.distance
                  FROM {entries}(p.code, p.version, p.centers, p.truncated, wanted) e
                  CROSS JOIN LATERAL (SELECT FROM {source} s WHERE s.{key} = e.key OFFSET 0) s
                  LIMIT k) t;
        ELSE
            SELECT array_agg(t.key), array_agg(t.distance), array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT e.key, e.distance, e.distance::float8 / {bits} + {blend} * {query_distance} AS score
                  FROM {entries}(p.code, p.version, p.centers, p.truncated, wanted) e
                  CROSS JOIN LATERAL (SELECT {to_vector} AS x FROM {source} s WHERE s.{key} = e.key OFFSET 0) s
                  WHERE s.x IS NOT NULL
                  ORDER BY 3, 1 LIMIT k) t;
        END IF;
        IF cardinality(keys) = k THEN
            RETURN QUERY SELECT unnest(keys), unnest(distances), unnest(scores);
            RETURN;
        END IF;
        -- Rows are missing: deleted, hidden by a policy, or in other lists.
        EXIT WHEN cardinality(p.centers) < reach;
        reach := least(reach::bigint * 4, 1000000);
        wanted := least(wanted::bigint * 4, 10000000);
    END LOOP;
    -- The lists have no full answer: read the source.
    IF p.fallback = 'the source has changed' THEN
        PERFORM foh._refuse_changed({name});
    ELSIF query IS NULL THEN
        RETURN QUERY SELECT h.key, h.distance, h.distance::float8 / {bits}
                     FROM {hamming}(ARRAY(SELECT s.{key} FROM {source} s), p.code) h ORDER BY h.distance, h.key LIMIT k;
    ELSE
        RETURN QUERY SELECT s.key, NULL::int, {blend} * {query_distance}
                     FROM (SELECT s.{key} AS key, {to_vector} AS x FROM {source} s OFFSET 0) s WHERE s.x IS NOT NULL ORDER BY 3, 1 LIMIT k;
    END IF;
END
$body$;
