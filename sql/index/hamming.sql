-- The Hamming distances of rows of the source, encoded on the way.
CREATE OR REPLACE FUNCTION {hamming}(keys {key_type}[], code bit) RETURNS TABLE (key {key_type}, distance int)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
AS $body$
    SELECT p.key, (p.code OPERATOR({vector}.<~>) $2)::int FROM {place}(keys) p WHERE p.code IS NOT NULL
$body$;
