-- The keys that wait in the inbox.
CREATE OR REPLACE FUNCTION {inbox_keys}() RETURNS SETOF {key_type}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    RETURN QUERY SELECT DISTINCT i.key FROM {inbox} i;
END
$body$;
