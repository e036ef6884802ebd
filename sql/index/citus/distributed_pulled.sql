-- The second step of a pull: deletes entries that are committed in the stream from the inbox.
CREATE OR REPLACE FUNCTION {pulled}(entries uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    DELETE FROM {inbox} i WHERE i.entry = ANY (entries);
END
$body$;
