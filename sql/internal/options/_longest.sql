-- The length above which the embedding of a row is far: squares and sums of such numbers do not fit a real. The same as
-- LONGEST in foh_pg/geometry.py.
CREATE OR REPLACE FUNCTION foh._longest() RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '1e18::pg_catalog.float8'
$function$;
