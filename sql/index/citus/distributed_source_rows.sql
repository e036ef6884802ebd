-- The table, or the rows of some keys, for statements that join them with tables of foh: Citus would send such a statement to the nodes,
-- where foh is not.
CREATE OR REPLACE FUNCTION {source_rows}(keys {key_type}[] DEFAULT NULL) RETURNS SETOF {source}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    PERFORM foh._open({tables_text});
    IF keys IS NULL THEN
        RETURN QUERY SELECT s.* FROM {source} s;
    ELSE
        RETURN QUERY SELECT s.* FROM {source} s WHERE s.{key} = ANY ($1{key_collate});
    END IF;
END
$body$;
