-- The rows in the lists of the nearest centers, for the caller to order, read with the caller's rights.
-- The score is an estimate from the bits alone, null where the lists cannot answer; there is no distance.
CREATE OR REPLACE FUNCTION {candidates}(query {vector}.vector, probes int DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 COST 10000
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $body$
#variable_conflict use_column
DECLARE
    near record;
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims($1), 1, $2, NULL, NULL, NULL);
    near := {near}($1, 10000000, $2, 0, NULL, 0, 1, false);
    IF near.fallback = 'changed' THEN
        PERFORM foh._refuse_changed({name});
    ELSIF near.fallback IS NOT NULL THEN
        RETURN QUERY SELECT s.{key}, NULL::float8, NULL::float8 FROM {source} s WHERE s.{embedding} IS NOT NULL;
    ELSE
        RETURN QUERY SELECT e.key, NULL::float8, {bit_score}(e.bits)
                     FROM (SELECT unnest(near.keys) AS key, unnest(near.bits) AS bits) e
                     CROSS JOIN LATERAL (SELECT FROM {source} s WHERE s.{key} = e.key OFFSET 0) s;
    END IF;
END
$body$;
