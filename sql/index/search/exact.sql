-- The answer where the lists cannot give a full one: the source itself, ordered by the exact distance.
CREATE OR REPLACE FUNCTION {exact}(query {vector}.vector, k int, filter text, params jsonb, max_distance float8)
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
        SELECT d.key, d.distance, d.distance
        FROM (SELECT s.key, {exact_distance}(s.x, $1) AS distance
              FROM (SELECT $2 AS params) v
              CROSS JOIN LATERAL (SELECT s.{key} AS key, {to_vector} AS x FROM {source} s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        ) OFFSET 0) s WHERE s.x IS NOT NULL OFFSET 0) d
        WHERE $4 IS NULL OR d.distance OPERATOR(pg_catalog.<=) $4 ORDER BY 2, 1 LIMIT $3$sql$ USING query, params, k, max_distance;
END
$body$;
