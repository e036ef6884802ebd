-- The code of a query, or of a row without labels, by the present hash functions.
CREATE OR REPLACE FUNCTION {encode}(embedding {vector}.vector) RETURNS bit
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
#variable_conflict use_variable
BEGIN
    IF {vector}.vector_dims(embedding) <> {dimensions} THEN
        PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(embedding), 1, 1, 0);
    END IF;
    RETURN coalesce((SELECT bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) embedding) >= p.bias) FROM {projection} p), {zeros});
END
$body$;
