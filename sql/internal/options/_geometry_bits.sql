-- How many geometry bits an index has: what the option asks for, brought to a number that the dimensions allow.
-- With fewer bits than dimensions several dimensions share one, with more each has several thresholds.
CREATE OR REPLACE FUNCTION foh._geometry_bits(dimensions int, asked int) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN asked IS NULL AND dimensions < 128 THEN (128 + dimensions - 1) / dimensions * dimensions
                WHEN coalesce(asked, 1024) >= dimensions THEN least(coalesce(asked, dimensions) / dimensions, 16000 / dimensions) * dimensions
                ELSE ceil(dimensions / ceil(dimensions / coalesce(asked, 1024)::float8))::int END
$function$;
