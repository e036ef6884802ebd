-- The centers nearest to a query, the nearest first, found through the nearest areas.
-- The condition on ctid makes PostgreSQL read all areas without their index; sequential scans are off because of other tables.
-- A plain SQL function that returns a table, so that it is inlined.
CREATE OR REPLACE FUNCTION {nearest_centers}(unit {query_type}, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT c.center FROM {center} c
    WHERE c.area = ANY (ARRAY(SELECT a.area FROM {area} a WHERE a.ctid >= '(0,0)' ORDER BY a.embedding OPERATOR({vector}.{query_operator}) $1 LIMIT 3 + $2::bigint / 4))
    ORDER BY c.embedding OPERATOR({vector}.{query_operator}) $1 LIMIT $2
$body$;
