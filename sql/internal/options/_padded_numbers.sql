-- To how many numbers, by zeros, a row is filled up before it is turned into geometry bits: see padded_numbers in foh_pg/geometry.py.
CREATE OR REPLACE FUNCTION foh._padded_numbers(turned int) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(turned + turned % 2, least(4 * (turned + turned % 2), 256))
$function$;
