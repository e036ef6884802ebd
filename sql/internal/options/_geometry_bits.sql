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
