-- The Hamming distances of rows of the source, encoded on the way.
CREATE OR REPLACE FUNCTION {hamming}(keys {key_type}[], code bit) RETURNS TABLE (key {key_type}, distance int)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
AS $body$
#variable_conflict use_column
BEGIN
    IF CURRENT_USER OPERATOR(pg_catalog.<>) {owner}::pg_catalog.name THEN
        PERFORM foh._guard({name});
    END IF;
    RETURN QUERY SELECT p.key, (p.code OPERATOR({vector}.<~>) $2)::int FROM {place}($1) p WHERE p.code IS NOT NULL;
END
$body$;
