-- How the geometry bits are made, for clients that encode their queries themselves.
CREATE OR REPLACE FUNCTION {thresholds}() RETURNS TABLE (bits int, threshold {vector}.vector, signs {vector}.vector)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $body$
    SELECT {geometry_option}, g.threshold, g.signs FROM {quantizer} g
$body$;
