-- Who the session is. A function may be given settings by its owner, role among them, and would then see another answer
-- inside than who called it: so callers of what reads a table pass theirs (a default argument does).
CREATE OR REPLACE FUNCTION foh._identity() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT session_user || ' ' || current_setting('role')
$function$;
