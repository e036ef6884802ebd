-- The factor of the learned weights that a dial of 0 to 1 stands for: none at 0, one at a half, fifty near 1.
CREATE OR REPLACE FUNCTION foh._dial_factor(dial float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN dial >= 0.98 THEN 50 ELSE dial / (1 - dial) END
$function$;
