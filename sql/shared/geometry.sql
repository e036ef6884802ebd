-- How many geometry bits an index has; foh_pg/geometry.py computes the same. Function quantize in sql/index/near.sql makes them.

-- How many numbers of a row are turned into geometry bits: its own, and for inner products one more. A vector has 16 000 numbers at the
-- most: there the one more takes the place of the last.
CREATE OR REPLACE FUNCTION foh._turned_numbers(dimensions int, distance text) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE distance WHEN 'ip' THEN least(dimensions + 1, 16000) ELSE dimensions END
$function$;

-- To how many numbers, by zeros, a row is filled up before it is turned into geometry bits: see padded_numbers in foh_pg/geometry.py.
CREATE OR REPLACE FUNCTION foh._padded_numbers(turned int) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(turned + turned % 2, least(4 * (turned + turned % 2), 256))
$function$;

-- How many geometry bits an index has: what the option asks for, brought to a number that can be shared out to the turned numbers.
-- By default each has as many thresholds as make about 1280 bits: at least two, for the first 768 turned numbers where there are more.
CREATE OR REPLACE FUNCTION foh._geometry_bits(turned int, asked int) RETURNS int
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    padded constant int := foh._padded_numbers(turned);
    bits constant int := coalesce(asked, CASE WHEN padded > 768 THEN 1536
        ELSE greatest(2, (1280 + padded / 2) / padded) * padded END);
    copies constant int := greatest(2, bits / padded);
BEGIN
    RETURN least(bits / copies, padded) * copies;
END
$function$;
