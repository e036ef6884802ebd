-- The rows in the lists of the nearest centers, for the caller to order, read with the caller's rights; and the rows that wait in the
-- inbox. The score is an estimate from the bits alone, null for rows that wait and where the lists cannot answer; there is no distance.
CREATE OR REPLACE FUNCTION {candidates}(query {vector}.vector, probes int DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql VOLATILE ROWS 1000 COST 10000
SET search_path = pg_catalog, pg_temp
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
#variable_conflict use_column
DECLARE
    near record;
    wanted {key_type}[];
    seen {key_type}[];
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims($1), 1, $2, NULL, NULL, NULL);
    near := {near}($1, 10000000, $2, 0, NULL, 0, 1, false);
    IF near.fallback = 'changed' THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    IF near.fallback IS NOT NULL THEN
        SELECT array_agg(s.{key}) INTO seen FROM {source} s WHERE s.{embedding} IS NOT NULL;
    ELSE
        wanted := near.keys || ARRAY(SELECT w.key FROM {inbox_keys}() AS w (key) WHERE w.key <> ALL (near.keys));
        SELECT array_agg(s.{key}) INTO seen FROM {source} s WHERE s.{key} = ANY (wanted{key_collate}) AND s.{embedding} IS NOT NULL;
    END IF;
    RETURN QUERY SELECT e.key, NULL::float8, CASE WHEN e.bits IS NOT NULL THEN {bit_score}(e.bits) END
                 FROM (SELECT u.key, n.bits FROM unnest(seen) AS u (key)
                       LEFT JOIN (SELECT unnest(near.keys) AS key, unnest(near.bits) AS bits) n ON n.key = u.key) e;
END
$body$;
