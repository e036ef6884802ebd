-- The centers nearest to a query, the nearest first. Their codes choose well more than are wanted, the embedding, where
-- there is one, among them.
-- A plain SQL function that returns a table, so that it is inlined.
CREATE OR REPLACE FUNCTION {nearest}(code bit, unit {query_type}, scale float8, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT n.center
    FROM (SELECT c.center, g.distance / {bits} + coalesce({blend} * {query_center_distance}, 0) AS score
          FROM (SELECT g.code, g.code OPERATOR({vector}.<~>) $1 AS distance FROM {center_code} g ORDER BY 2) g
          CROSS JOIN LATERAL (SELECT c.center, c.embedding FROM {center} c WHERE c.code = g.code OFFSET 0) c
          LIMIT greatest(32, 8 * $4::bigint)) n
    ORDER BY n.score LIMIT $4
$body$;
