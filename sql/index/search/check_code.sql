-- An error where a code cannot be compared with those of the index.
CREATE OR REPLACE FUNCTION {check_code}(code bit, version bigint) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
    present bigint := (SELECT i.version FROM foh.index i WHERE i.id = {id});
BEGIN
    IF code IS NULL OR length(code) <> {query_bits} THEN
        RAISE EXCEPTION 'foh: queries of index % have {query_bits} bits (its function encode makes them), the code has %', {name}, coalesce(length(code)::text, 'none: it is NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF version <> present THEN
        RAISE EXCEPTION 'foh: the query code was made for version % of index %, which is at version % now', version, {name}, present
            USING ERRCODE = 'FH002', HINT = 'Encode the query again.';
    END IF;
END
$body$;
