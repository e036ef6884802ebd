-- The Hamming distances between the geometry bits of a query and those of rows of the source, which are computed here.
CREATE OR REPLACE FUNCTION {hamming}(keys {key_type}[], geometry bit) RETURNS TABLE (key {key_type}, distance int)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
#variable_conflict use_column
BEGIN
    PERFORM foh._open({tables_text});
    RETURN QUERY SELECT v.key, (p.geometry OPERATOR({vector}.<~>) $2)::int
    FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = ANY ($1{key_collate}) OFFSET 0) v
    CROSS JOIN LATERAL {place}(v.x, v.labels) p WHERE v.x IS NOT NULL;
END
$body$;
