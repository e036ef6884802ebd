-- A search among the rows that a condition keeps, with the caller's rights and search path; so every operator that is
-- ours is named with its schema.
CREATE OR REPLACE FUNCTION {search_filtered}(query {vector}.vector, code bit, k int, probes int, shortlist int, filter text, params jsonb)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
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
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, reach, ranked);
    -- What is whole between brackets here and between parentheses below is one expression: nothing can break out.
    EXECUTE $sql$SELECT FROM (SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT ARRAY[
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        ]::boolean[] FROM {source} s WHERE false) s$sql$ USING params;
    wanted := greatest(k, ranked);
    LOOP
        SELECT * INTO p FROM {probe}(query, code, reach);
        EXIT WHEN p.fallback IS NOT NULL;
        EXECUTE $sql$
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score)
            FROM (SELECT e.key, e.distance, e.distance::float8 OPERATOR(pg_catalog./) {bits}::float8 OPERATOR(pg_catalog.+) e.part AS score
                  FROM (SELECT e.key, e.distance, CASE WHEN $6 OPERATOR(pg_catalog.=) 0 THEN 0 ELSE {qualified_part} END AS part
                        FROM (SELECT $7 AS params) v
                        CROSS JOIN {entries}($2, $3, $4, $5, $8) e
                        CROSS JOIN LATERAL (SELECT {to_vector} AS x FROM {source} s WHERE s.{key} OPERATOR(pg_catalog.=) e.key AND (
                            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
                        ) OFFSET 0) s
                        WHERE s.x IS NOT NULL) e
                  ORDER BY 3, 1 LIMIT $9) t$sql$
            INTO keys, distances, scores
            USING query, p.code, p.version, p.centers, p.truncated, ranked, params, wanted, k, p.scale;
        IF pg_catalog.cardinality(keys) OPERATOR(pg_catalog.=) k THEN
            RETURN QUERY SELECT pg_catalog.unnest(keys), pg_catalog.unnest(distances), pg_catalog.unnest(scores);
            RETURN;
        END IF;
        EXIT WHEN pg_catalog.cardinality(p.centers) OPERATOR(pg_catalog.<) reach;
        reach := least(reach::bigint OPERATOR(pg_catalog.*) 4, 1000000);
        wanted := least(wanted::bigint OPERATOR(pg_catalog.*) 4, 10000000);
    END LOOP;
    IF p.fallback OPERATOR(pg_catalog.=) 'the source has changed' THEN
        PERFORM foh._refuse_changed({name});
    ELSIF query IS NULL THEN
        RETURN QUERY EXECUTE $sql$
            SELECT h.key, h.distance, h.distance::float8 OPERATOR(pg_catalog./) {bits}::float8
            FROM (SELECT $1 AS params) v
            CROSS JOIN LATERAL {hamming}(ARRAY(SELECT s.{key} FROM {source} s WHERE (
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            )), $2) h ORDER BY 2, 1 LIMIT $3$sql$ USING params, p.code, k;
    ELSE
        RETURN QUERY EXECUTE $sql$
            SELECT s.key, NULL::int, {qualified_part}
            FROM (SELECT $2 AS params) v
            CROSS JOIN LATERAL (SELECT s.{key} AS key, {to_vector} AS x FROM {source} s WHERE (
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            ) OFFSET 0) s WHERE s.x IS NOT NULL ORDER BY 3, 1 LIMIT $3$sql$ USING query, params, k, NULL, NULL, NULL, NULL, NULL, NULL, p.scale;
    END IF;
END
$body$;
