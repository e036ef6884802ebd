-- The step of a search that a node does for all shards it has: reads the rows of the keys found, and the nearest of those that wait in
-- the inbox, with the rights of the caller, so that policies and the filter hold. shards, inboxes: the numbers of the shards that the
-- coordinator knows to be here. path: the search_path of the caller, in which the filter was written.
-- Returns arrays of keys, of scores, and of whether each key waits, as three texts, or as six: those found, then those that wait. Null
-- where a shard is not here any more; a single word where the lists cannot answer.
CREATE OR REPLACE FUNCTION {read}(shards bigint[], inboxes bigint[], keys {key_type}[], query {vector}.vector, scale float8, k int, filter text,
                                  params jsonb, path text) RETURNS text[]
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $body$
DECLARE
    -- Where there is no filter, the statement that reads what was found is planned once in a session. A setting of the same name
    -- says that it was planned.
    plan constant text := 'foh_' || left(encode(sha256(convert_to({plan_text} || array_to_string(shards, ' '), 'UTF8')), 'hex'), 32);
    plain constant boolean := filter IS NULL AND query IS NOT NULL;
    condition constant text := coalesce('AND (' || filter || E'\n)', '');
    -- What a row is ranked by; null in a search by bits.
    score constant text := CASE WHEN query IS NULL THEN 'NULL::pg_catalog.float8' ELSE $sql${node_score}$sql$ END;
    waits {key_type}[];
    waiting int := 0;
    late text := '';
    parts text := '';
    bytes bigint;
    answer text[];
    further text[];
BEGIN
    FOR number IN 1 .. cardinality(shards) LOOP
        bytes := pg_relation_size(to_regclass({inbox_prefix} || inboxes[number] || '"'));
        IF bytes IS NULL OR to_regclass({source_prefix} || shards[number] || '"') IS NULL THEN
            RETURN NULL;
        ELSIF bytes > 0 THEN
            -- In an empty file nothing waits. A file that is not empty may hold nothing but deleted entries.
            waits := {waiting}(inboxes[number]);
            IF waits IS NULL THEN
                RETURN ARRAY['resync'];
            ELSIF cardinality(waits) > 0 THEN
                waiting := waiting + cardinality(waits);
                late := late || $sql$ UNION ALL SELECT s.{key}, {to_vector}, true FROM $sql$ || {source_prefix} || shards[number]
                        || $sql$" s WHERE s.{key} OPERATOR(pg_catalog.=) ANY ($sql$ || quote_literal(waits::text) || $sql$) $sql$ || condition;
            END IF;
        END IF;
    END LOOP;
    IF NOT plain OR current_setting('foh.' || plan, true) IS DISTINCT FROM 'prepared' THEN
        FOR number IN 1 .. cardinality(shards) LOOP
            parts := parts || CASE number WHEN 1 THEN '' ELSE ' UNION ALL ' END || $sql$SELECT s.{key} AS key, {to_vector} AS x, false AS waits FROM $sql$
                     || {source_prefix} || shards[number] || $sql$" s WHERE s.{key} OPERATOR(pg_catalog.=) ANY ($3) $sql$ || condition;
        END LOOP;
    END IF;
    IF plain THEN
        IF parts <> '' THEN
            IF EXISTS (SELECT FROM pg_prepared_statements p WHERE p.name = plan) THEN
                EXECUTE format('DEALLOCATE %I', plan);
            END IF;
            EXECUTE format('PREPARE %I ({vector}.vector, jsonb, {key_type}[], int, float8) AS ', plan)
                    || $sql$SELECT ARRAY[array_agg(r.key)::text, array_agg(r.score)::text, array_fill(false, ARRAY[count(*)::int])::text]
                            FROM (SELECT s.key, {node_score} AS score FROM ($sql$ || parts || $sql$) s WHERE s.x IS NOT NULL) r$sql$;
            PERFORM set_config('foh.' || plan, 'prepared', false);
        END IF;
        EXECUTE format('EXECUTE %I (%L, NULL, %L, NULL, %L)', plan, query, keys, scale) INTO answer;
        IF waiting > 0 THEN
            EXECUTE 'SELECT ARRAY[array_agg(r.key)::text, array_agg(r.score)::text, array_agg(true)::text]
                     FROM (SELECT s.key, ' || score || ' AS score FROM (SELECT NULL::{key_type} AS key, NULL::{vector}.vector AS x, true AS waits WHERE false' || late || ') s
                           WHERE s.x IS NOT NULL ORDER BY 2 LIMIT $6) r'
            INTO further USING query, NULL, NULL, NULL, scale, k;
        END IF;
        RETURN answer || further;
    END IF;
    PERFORM set_config('search_path', path, true);
    -- Returns all of the keys that were found, and the nearest of those that wait.
    EXECUTE 'SELECT ARRAY[pg_catalog.array_agg(r.key)::pg_catalog.text, pg_catalog.array_agg(r.score)::pg_catalog.text, pg_catalog.array_agg(r.waits)::pg_catalog.text]
             FROM (SELECT s.key, ' || score || ' AS score, s.waits FROM (SELECT $2 AS params) v CROSS JOIN LATERAL (
                       ' || parts || late || ' OFFSET 0) s WHERE s.x IS NOT NULL
                   ORDER BY s.waits, 2 LIMIT pg_catalog.cardinality($3) OPERATOR(pg_catalog.+) $6) r'
    INTO answer USING query, params, keys, NULL, scale, CASE WHEN query IS NULL THEN waiting ELSE k END;
    RETURN answer;
END
$body$;
