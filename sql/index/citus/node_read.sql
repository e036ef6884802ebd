-- The step of a search that a node does for all shards it has: reads the rows of the keys found, and the nearest of those that wait in
-- the inbox, with the rights of the caller, so that policies and the filter hold. shards, inboxes: the numbers of the shards that the
-- coordinator knows to be here; homes: the shard of each key; places: a number of each key; path: the search_path of the caller, in which
-- the filter was written.
-- Returns arrays of keys, of distances and of places, null where the key waits, as three texts. Null where a shard is not here any more, or
-- to be asked again; a single word where the lists cannot answer.
CREATE OR REPLACE FUNCTION {read}(shards bigint[], inboxes bigint[], keys {key_type}[], homes bigint[], places bigint[], query text, k int, max_distance float8, filter text,
                                  params jsonb, path text) RETURNS text[]
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
-- The lookup by key is pinned: the plan may have been made when the shards were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $body$
DECLARE
    count constant int := cardinality(shards);
    -- The statement that reads rows without a filter is prepared once in a session. A setting of the same name holds the numbers of the
    -- shards that it reads, their oids, and the oids of their inboxes. On the coordinator this may be the session of a role that calls a
    -- function of another: a statement that it prepared under that name would run with the rights of the other, so nothing is prepared.
    own constant boolean := current_user = session_user;
    prepared bigint[] := CASE WHEN own THEN nullif(current_setting('foh.{plan}', true), '')::bigint[] END;
    gone boolean := true;
    -- The shards for which something may wait, and their inboxes.
    late_shards bigint[];
    late_inboxes bigint[];
    late_keys {key_type}[];
    late_homes bigint[];
    cut boolean := false;
    reach float8;
    resync boolean;
    -- Several entries of an inbox may be about one key, and the row may have been deleted since.
    most bigint := 2 * k::bigint + 16;
    all_keys {key_type}[] := keys;
    all_homes bigint[] := homes;
    all_places bigint[] := places;
    -- For each key the row out of its shard: that of no other shard is looked up, since PostgreSQL tests the number of the shard first.
    -- Numbers of shards and the filter go in between.
    opening constant text := $sql$
        SELECT ARRAY[pg_catalog.array_agg(r.key)::pg_catalog.text, pg_catalog.array_agg(r.distance)::pg_catalog.text, pg_catalog.array_agg(r.place)::pg_catalog.text]
        FROM (SELECT s.key, {node_distance} AS distance, k.place
              FROM (SELECT $2 AS params, pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS home, pg_catalog.unnest($5) AS place) k
              CROSS JOIN LATERAL ($sql$;
    lookup constant text := $sql$SELECT s.{key} AS key, {to_vector} AS x FROM $sql$ || {source_prefix};
    by_key constant text := $sql$ AND s.{key} OPERATOR(pg_catalog.=) k.key$sql$;
    closing constant text := $sql$ OFFSET 0) s WHERE s.x IS NOT NULL OFFSET 0) r WHERE $6 IS NULL OR r.distance OPERATOR(pg_catalog.<=) $6$sql$;
    statement text;
    answer text[];
BEGIN
    LOOP
        IF prepared[1 : count] = shards THEN
            -- In an empty file nothing waits. A file that is not empty may hold nothing but deleted entries.
            SELECT bool_or(s.readable IS NULL OR s.bytes IS NULL), array_agg(s.shard) FILTER (WHERE s.bytes > 0), array_agg(s.inbox) FILTER (WHERE s.bytes > 0)
            INTO gone, late_shards, late_inboxes
            FROM (SELECT unnest(shards) AS shard, unnest(inboxes) AS inbox,
                         has_table_privilege(unnest(prepared[count + 1 : 2 * count])::oid, 'SELECT') AS readable,
                         pg_relation_size(unnest(prepared[2 * count + 1 : 3 * count])::oid::regclass) AS bytes) s;
        END IF;
        EXIT WHEN NOT gone;
        prepared := shards || ARRAY(SELECT to_regclass({source_prefix} || s || '"')::oid::bigint FROM unnest(shards) s)
                           || ARRAY(SELECT to_regclass({inbox_prefix} || s || '"')::oid::bigint FROM unnest(inboxes) s);
        IF array_position(prepared, NULL) IS NOT NULL THEN
            RETURN NULL;
        END IF;
        statement := opening || (SELECT string_agg(lookup || s || '" s WHERE k.home OPERATOR(pg_catalog.=) ' || s || by_key, ' UNION ALL ') FROM unnest(shards) s)
                     || closing;
        IF own THEN
            IF EXISTS (SELECT FROM pg_prepared_statements p WHERE p.name = '{plan}') THEN
                DEALLOCATE {plan};
            END IF;
            EXECUTE 'PREPARE {plan} ({vector}.vector, jsonb, {key_type}[], bigint[], bigint[], float8) AS ' || statement;
            PERFORM set_config('foh.{plan}', prepared::text, false);
        END IF;
    END LOOP;
    IF filter IS NOT NULL THEN
        statement := opening || (SELECT string_agg(lookup || s || '" s WHERE k.home OPERATOR(pg_catalog.=) ' || s || by_key || ' AND (' || filter || E'\n)', ' UNION ALL ')
                                 FROM unnest(shards) s) || closing;
        PERFORM set_config('search_path', path, true);
    END IF;
    LOOP
        IF late_shards IS NOT NULL THEN
            SELECT w.keys, w.homes, w.cut, w.reach, w.resync INTO late_keys, late_homes, cut, reach, resync
            FROM {waiting}(late_shards, late_inboxes, query::{vector}.vector, most) w;
            IF resync THEN
                RETURN ARRAY['resync'];
            END IF;
            SELECT pg_catalog.array_agg(w.key), pg_catalog.array_agg(w.home), pg_catalog.array_agg(w.place) INTO all_keys, all_homes, all_places
            FROM (SELECT DISTINCT l.key, l.home, NULL::bigint AS place FROM (SELECT pg_catalog.unnest(late_keys) AS key, pg_catalog.unnest(late_homes) AS home) l
                  UNION ALL
                  SELECT f.* FROM (SELECT pg_catalog.unnest(keys) AS key, pg_catalog.unnest(homes) AS home, pg_catalog.unnest(places) AS place) f
                  WHERE (f.key OPERATOR(pg_catalog.=) ANY (late_keys)) IS NOT TRUE) w;
        END IF;
        IF filter IS NULL AND own THEN
            BEGIN
                EXECUTE pg_catalog.format('EXECUTE {plan} (%L, NULL, %L, %L, %L, %L)', query, all_keys, all_homes, all_places, max_distance) INTO answer;
            EXCEPTION WHEN invalid_sql_statement_name THEN
                -- On the coordinator this is the session of the caller, who may have said DEALLOCATE ALL.
                PERFORM pg_catalog.set_config('foh.{plan}', '', false);
                RETURN NULL;
            END;
        ELSE
            EXECUTE statement INTO answer USING query::{vector}.vector, params, all_keys, all_homes, all_places, max_distance;
        END IF;
        EXIT WHEN NOT cut OR reach OPERATOR(pg_catalog.>) (max_distance OPERATOR(pg_catalog.+) 0.001::pg_catalog.float8);
        -- Further rows that wait are nearer if some of these have moved away, are hidden, or do not pass the filter. The vectors that were
        -- noted may be rounded.
        EXIT WHEN k OPERATOR(pg_catalog.<=) (
            SELECT pg_catalog.count(*) FROM (SELECT pg_catalog.unnest(answer[2]::pg_catalog.float8[]) AS distance, pg_catalog.unnest(answer[3]::bigint[]) AS place) r
            WHERE r.place IS NULL AND r.distance OPERATOR(pg_catalog.<=) (reach OPERATOR(pg_catalog.+) 0.001::pg_catalog.float8));
        most := most OPERATOR(pg_catalog.*) 4;
    END LOOP;
    RETURN answer;
END
$body$;
