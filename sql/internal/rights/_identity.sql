-- The role of the session. The owner of a function can attach settings to it, role among them, so a function may see another
-- role than its caller has. Callers of a function that reads a table therefore pass their own, through a default argument.
CREATE OR REPLACE FUNCTION foh._identity() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT session_user || ' ' || current_setting('role')
$function$;
