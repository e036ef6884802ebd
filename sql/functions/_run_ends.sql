-- Where each run of equal codes ends, counted from 1.
CREATE OR REPLACE FUNCTION foh._run_ends(codes bit[]) RETURNS int[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(r.at ORDER BY r.at), '{}')
    FROM (SELECT u.at::int AS at, u.code IS DISTINCT FROM lead(u.code) OVER (ORDER BY u.at) AS closes
          FROM unnest(codes) WITH ORDINALITY AS u (code, at)) r WHERE r.closes
$function$;
