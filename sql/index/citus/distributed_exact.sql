-- The answer where the lists cannot give a full one: every shard sends its nearest rows.
CREATE OR REPLACE FUNCTION {exact}(query {vector}.vector, k int, filter text, params jsonb, max_distance float8)
RETURNS SETOF {result}
LANGUAGE plpgsql VOLATILE ROWS 10
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    RETURN QUERY EXECUTE $sql$
        SELECT s.key, {node_distance}, {node_distance}
        FROM (SELECT s.{key} AS key, {to_vector} AS x FROM (SELECT s.*, $2 AS params FROM {source} s) s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        )) s WHERE s.x IS NOT NULL AND ($4 IS NULL OR {node_distance} OPERATOR(pg_catalog.<=) $4) ORDER BY 3, 1 LIMIT $3$sql$ USING query, params, k, max_distance;
END
$body$;
