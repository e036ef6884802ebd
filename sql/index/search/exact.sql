-- The answer where the lists cannot give a full one: the source itself, ordered by the exact distance.
CREATE OR REPLACE FUNCTION {exact}(query {vector}.vector, k int, filter text, params jsonb, scale float8)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
-- A scan is wanted here; the search that calls this function has switched scans off for its lookups.
SET enable_seqscan = on
SET enable_bitmapscan = on
SET enable_hashjoin = on
SET enable_mergejoin = on
AS $body$
BEGIN
    RETURN QUERY EXECUTE $sql$
        SELECT s.key, NULL::int, {exact_score}(s.x, $1, $4)
        FROM (SELECT $2 AS params) v
        CROSS JOIN LATERAL (SELECT s.{key} AS key, {to_vector} AS x FROM {source} s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        ) OFFSET 0) s WHERE s.x IS NOT NULL ORDER BY 3, 1 LIMIT $3$sql$ USING query, params, k, scale;
END
$body$;
