-- The centers nearest to a query, the nearest first, found through the nearest areas.
-- A plain SQL function that returns a table, so that it is inlined.
CREATE OR REPLACE FUNCTION {nearest}(unit {query_type}, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT c.center FROM {center} c
    WHERE c.area = ANY (ARRAY(SELECT a.area FROM {area} a ORDER BY a.embedding OPERATOR({vector}.{query_operator}) $1 LIMIT 3 + $2::bigint / 4))
    ORDER BY c.embedding OPERATOR({vector}.{query_operator}) $1 LIMIT $2
$body$;
