-- How many numbers of a row are turned into geometry bits: its own, and for inner products one more. A vector has 16 000 numbers at the
-- most: there the one more takes the place of the last.
CREATE OR REPLACE FUNCTION foh._turned_numbers(dimensions int, distance text) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE distance WHEN 'ip' THEN least(dimensions + 1, 16000) ELSE dimensions END
$function$;
