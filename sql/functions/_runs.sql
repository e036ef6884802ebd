-- The code of each run of equal codes.
CREATE OR REPLACE FUNCTION foh._runs(codes bit[]) RETURNS bit[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(r.code ORDER BY r.at), '{}')
    FROM (SELECT u.code, u.at, u.code IS DISTINCT FROM lag(u.code) OVER (ORDER BY u.at) AS begins
          FROM unnest(codes) WITH ORDINALITY AS u (code, at)) r WHERE r.begins
$function$;
