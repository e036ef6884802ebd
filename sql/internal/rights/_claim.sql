-- Records who asks, for the next function that runs as foh's owner: see foh.claim.
CREATE OR REPLACE FUNCTION foh._claim(source oid) RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $function$
    INSERT INTO foh.claim (source) VALUES (source)
$function$;
