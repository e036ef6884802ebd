-- The role with whose rights the functions of an index read its table: the owner of these functions.
CREATE OR REPLACE FUNCTION foh._acting_role(index text) RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_get_userbyid(p.proowner) FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (index || '_rows')::name
$function$;
