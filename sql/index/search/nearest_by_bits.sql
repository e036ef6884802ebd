-- The same as nearest, for a query of which only the bits are known. Bits tell less than a vector, so more areas are read.
CREATE OR REPLACE FUNCTION {nearest_by_bits}(geometry bit, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT c.center FROM {center} c
    WHERE c.area = ANY (ARRAY(SELECT a.area FROM {area} a ORDER BY a.geometry OPERATOR({vector}.<~>) $1 LIMIT 2 + $2::bigint))
    ORDER BY c.geometry OPERATOR({vector}.<~>) $1 LIMIT $2
$body$;
