-- The Hamming distances of rows of the source from the geometry bits of a query, their own bits made on the way.
CREATE OR REPLACE FUNCTION {hamming}(keys {key_type}[], geometry bit) RETURNS TABLE (key {key_type}, distance int)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
AS $body$
    SELECT v.key, (p.geometry OPERATOR({vector}.<~>) $2)::int
    FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = ANY ($1{key_collate}) OFFSET 0) v
    CROSS JOIN LATERAL {place}(v.x, v.labels) p WHERE v.x IS NOT NULL
$body$;
