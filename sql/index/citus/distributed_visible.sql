-- The keys of all rows that the caller can see and that the filter lets pass.
CREATE OR REPLACE FUNCTION {visible}(filter text, params jsonb) RETURNS {key_type}[]
LANGUAGE plpgsql VOLATILE
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    keys {key_type}[];
BEGIN
    EXECUTE $sql$SELECT pg_catalog.array_agg(s.key) FROM (SELECT s.{key} AS key FROM (SELECT s.*, $1 AS params FROM {source} s) s WHERE (
        $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
    )) s$sql$ INTO keys USING params;
    RETURN keys;
END
$body$;
