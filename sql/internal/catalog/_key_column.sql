-- The present name of the key column, or null where it is gone or of another type.
CREATE OR REPLACE FUNCTION foh._key_column(index int) RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.present FROM foh.index i, foh._columns(i) c
    WHERE i.id = index AND c.role = 'key' AND c.type = i.key_type
$function$;
