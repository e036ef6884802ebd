-- Distributed tables of Citus, searching: what is on every node.

-- foh: node waiting, if distributed
-- The keys that wait in some shards of the inbox and are nearest to a query by the vectors that were noted, and the shard that each is
-- in, for roles that may search but may not read the inbox. A key comes once for each of its entries.
-- Keys that were noted without a vector come first. cut: more keys wait, none of which was noted at a distance below reach. resync: one
-- of the entries says that the whole table must be read again, or too many keys are without a vector.
CREATE OR REPLACE FUNCTION {waiting}(shards bigint[], inboxes bigint[], query {vector}.vector, wanted bigint,
                                     {each OUT keys_# ~[]}, OUT homes bigint[], OUT cut boolean, OUT reach float8, OUT resync boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = on
SET jit = off
AS $body$
DECLARE
    parts constant text := (SELECT string_agg(format('SELECT {each i.k#}, i.op, i.x, %s::bigint AS home FROM %s i', p.shard, {inbox_prefix} || p.inbox || '"'), ' UNION ALL ')
                            FROM (SELECT unnest(shards) AS shard, unnest(inboxes) AS inbox) p);
BEGIN
    EXECUTE $sql$
        SELECT {each array_agg(e.k#)}, array_agg(e.home), count(*) >= $2, max(e.distance), coalesce(bool_or(e.op <> 'n'), false) OR count(*) - count(e.distance) >= $2
        FROM (SELECT {each i.k#}, i.home, i.op, i.x OPERATOR({vector}.{noted_operator}) $1 AS distance FROM ($sql$ || parts || $sql$) i
              WHERE i.op <> 'd' ORDER BY distance NULLS FIRST LIMIT $2) e$sql$
    INTO {each keys_#}, homes, cut, reach, resync USING {unit}(query)::{noted_type}, wanted;
    reach := {noted_distance};
END
$body$;

-- foh: node read, if distributed
-- The step of a search that a node does for all shards it has: reads the rows of the keys found, and the nearest of those that wait in
-- the inbox, with the rights of the caller, so that policies and the filter hold. shards, inboxes: the numbers of the shards that the
-- coordinator knows to be here; keys_1 and so on: the columns of the keys; homes: the shard of each key; places: a number of each key; path: the search_path of the caller, in which
-- the filter was written.
-- Returns arrays, as texts: of distances, of places, null where the key waits, and of the columns of the keys. Null where a shard is not here any more, or
-- to be asked again; a single word where the lists cannot answer.
CREATE OR REPLACE FUNCTION {read}(shards bigint[], inboxes bigint[], {each keys_# ~[]}, homes bigint[], places bigint[], query text, k int, max_distance float8, filter text,
                                  params jsonb, path text) RETURNS text[]
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
-- The lookup by key is pinned: the plan may have been made when the shards were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off{iso_dates}
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
    {each late_# ~[];}
    late_homes bigint[];
    cut boolean := false;
    reach float8;
    resync boolean;
    -- Several entries of an inbox may be about one key, and the row may have been deleted since.
    most bigint := 2 * k::bigint + 16;
    {each all_# ~[] := keys_#;}
    all_homes bigint[] := homes;
    all_places bigint[] := places;
    -- For each key the row out of its shard: that of no other shard is looked up, since PostgreSQL tests the number of the shard first.
    -- Numbers of shards and the filter go in between.
    opening constant text := $sql$
        SELECT ARRAY[pg_catalog.array_agg(r.distance)::pg_catalog.text, pg_catalog.array_agg(r.place)::pg_catalog.text, {each pg_catalog.array_agg(r.k#)::pg_catalog.text}]
        FROM (SELECT {each k.k#}, {node_distance} AS distance, k.place
              FROM (SELECT $2 AS params, pg_catalog.unnest($3) AS home, pg_catalog.unnest($4) AS place, {given_as_k}) k
              CROSS JOIN LATERAL ($sql$;
    lookup constant text := $sql$SELECT {to_vector} AS x FROM $sql$ || {source_prefix};
    by_key constant text := $sql$ AND {each s.@ OPERATOR(pg_catalog.=) k.k# AND}$sql$;
    closing constant text := $sql$ OFFSET 0) s WHERE s.x IS NOT NULL OFFSET 0) r WHERE $5 IS NULL OR r.distance OPERATOR(pg_catalog.<=) $5$sql$;
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
            EXECUTE 'PREPARE {plan} ({vector}.vector, jsonb, bigint[], bigint[], float8, {each ~[]}) AS ' || statement;
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
            SELECT {each w.keys_#}, w.homes, w.cut, w.reach, w.resync INTO {each late_#}, late_homes, cut, reach, resync
            FROM {waiting}(late_shards, late_inboxes, query::{vector}.vector, most) w;
            IF resync THEN
                RETURN ARRAY['resync'];
            END IF;
            SELECT {each pg_catalog.array_agg(w.k#)}, pg_catalog.array_agg(w.home), pg_catalog.array_agg(w.place) INTO {each all_#}, all_homes, all_places
            FROM (SELECT DISTINCT {each l.k#}, l.home, NULL::bigint AS place FROM (SELECT {each pg_catalog.unnest(late_#) AS k#}, pg_catalog.unnest(late_homes) AS home) l
                  UNION ALL
                  SELECT f.* FROM (SELECT {each pg_catalog.unnest(keys_#) AS k#}, pg_catalog.unnest(homes) AS home, pg_catalog.unnest(places) AS place) f
                  WHERE NOT EXISTS (SELECT FROM (SELECT {each pg_catalog.unnest(late_#) AS k#}) l WHERE {each l.k# OPERATOR(pg_catalog.=) f.k# AND})) w;
        END IF;
        IF filter IS NULL AND own THEN
            BEGIN
                EXECUTE pg_catalog.format('EXECUTE {plan} (%L, NULL, %L, %L, %L, {each %L})', query, all_homes, all_places, max_distance, {each all_#}) INTO answer;
            EXCEPTION WHEN invalid_sql_statement_name THEN
                -- On the coordinator this is the session of the caller, who may have said DEALLOCATE ALL.
                PERFORM pg_catalog.set_config('foh.{plan}', '', false);
                RETURN NULL;
            END;
        ELSE
            EXECUTE statement INTO answer USING query::{vector}.vector, params, all_homes, all_places, max_distance, {each all_#};
        END IF;
        EXIT WHEN NOT cut OR reach OPERATOR(pg_catalog.>) (max_distance OPERATOR(pg_catalog.+) 0.001::pg_catalog.float8);
        -- Further rows that wait are nearer if some of these have moved away, are hidden, or do not pass the filter. The vectors that were
        -- noted may be rounded.
        EXIT WHEN k OPERATOR(pg_catalog.<=) (
            SELECT pg_catalog.count(*) FROM (SELECT pg_catalog.unnest(answer[1]::pg_catalog.float8[]) AS distance, pg_catalog.unnest(answer[2]::bigint[]) AS place) r
            WHERE r.place IS NULL AND r.distance OPERATOR(pg_catalog.<=) (reach OPERATOR(pg_catalog.+) 0.001::pg_catalog.float8));
        most := most OPERATOR(pg_catalog.*) 4;
    END LOOP;
    RETURN answer;
END
$body$;
