-- The same for a query of which only bits are known, which tell less: more areas are looked at.
CREATE OR REPLACE FUNCTION {nearest_by_bits}(geometry bit, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT c.center FROM {center} c
    WHERE c.area = ANY (ARRAY(SELECT a.area FROM {area} a ORDER BY a.geometry OPERATOR({vector}.<~>) $1 LIMIT 2 + $2::bigint))
    ORDER BY c.geometry OPERATOR({vector}.<~>) $1 LIMIT $2
$body$;
