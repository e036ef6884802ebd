-- The learners that an index can be driven by.
CREATE OR REPLACE FUNCTION foh._learners() RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $function$
    SELECT '{foh,adapthash,bsodh,hmoh,mihash,osh,sketchhash}'::text[]
$function$;
