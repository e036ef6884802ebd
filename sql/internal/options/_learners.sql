-- The learners that an index can use.
CREATE OR REPLACE FUNCTION foh._learners() RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $function$
    SELECT '{foh,adapthash,bsodh,hmoh,mihash,osh,sketchhash}'::text[]
$function$;
