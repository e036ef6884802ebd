-- How many entries wait in the inbox, and since when.
CREATE OR REPLACE FUNCTION {inbox_stat}(OUT entries bigint, OUT since timestamptz)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    SELECT count(*), min(i.written_at) INTO entries, since FROM {inbox} i;
END
$body$;
