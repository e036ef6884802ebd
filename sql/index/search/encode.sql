-- The bits of a query by the present model: its geometry, then its learned code; the code alone where geometry is off.
CREATE OR REPLACE FUNCTION {encode}(embedding {vector}.vector) RETURNS bit
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
#variable_conflict use_variable
BEGIN
    IF {vector}.vector_dims(embedding) <> {dimensions} THEN
        PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(embedding), 1, NULL, NULL, NULL);
    END IF;
    RETURN (SELECT {encoded} FROM (SELECT {unit}(embedding) AS u OFFSET 0) q CROSS JOIN {quantizer} g CROSS JOIN (
                SELECT coalesce(bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) embedding) >= p.bias), {zeros}) AS code FROM {projection} p) p);
END
$body$;
