-- An SQL expression for the highest level, above low and up to high, of which the marks of e have a bit (level_1 to level_8).
CREATE OR REPLACE FUNCTION foh._level(low int, high int) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    middle int := (low + high + 1) / 2;
BEGIN
    IF low = high THEN
        RETURN (low / 8.0::float8)::text || '::float8';
    END IF;
    RETURN format('CASE WHEN bit_count(e.marks & level_%s) > 0 THEN %s ELSE %s END', middle, foh._level(middle, high), foh._level(low, middle - 1));
END
$function$;
