-- How many geometry bits an index has: what the option asks for, brought to a number that can be shared out to the numbers that are turned.
-- By default each turned number has as many thresholds as make about 1280 bits: at most 32 of them if that makes 512 bits, at least
-- two, for the first 768 numbers where there are more.
CREATE OR REPLACE FUNCTION foh._geometry_bits(turned int, asked int) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT least(b.bits / b.copies, b.even) * b.copies
    FROM (SELECT d.even, d.bits, greatest(2, d.bits / d.even) AS copies
          FROM (SELECT e.even, coalesce(asked, CASE WHEN e.even > 768 THEN 1536
                                                    ELSE greatest(2, least((1280 + e.even / 2) / e.even, 32), 512 / e.even) * e.even END) AS bits
                FROM (SELECT turned + turned % 2 AS even) e) d) b
$function$;
