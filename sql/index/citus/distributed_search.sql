-- The search of a distributed table: the same look-up as in any other search, on the coordinator, then one call for each node that has
-- shards (see node_read), which reads the rows found and those that wait there. VOLATILE, so that each step sees what is committed when
-- it begins. The search compares the moment before with the moment after, and begins again where something changed in between.
CREATE OR REPLACE FUNCTION {search}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                    filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL,
                                    recall float8 DEFAULT NULL, max_distance float8 DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql VOLATILE ROWS 10 COST 10000
-- Nothing is written: a node needs no transaction around what it is asked.
SET citus.function_opens_transaction_block = off
-- Planned once: Citus chooses the node when the plan is run.
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    near pg_catalog.record;
    before pg_catalog.record;
    since pg_catalog.record;
    node pg_catalog.record;
    dial pg_catalog.float8 := {dial_factor}(labels);
    -- What the next look-up is asked for.
    reach int := probes;
    -- How many times k rows are looked at: where a filter is given, some rows do not pass it.
    times bigint := CASE WHEN filter IS NULL THEN 1 ELSE 4 END;
    again boolean := false;
    more bigint;
    path pg_catalog.text;
    query_text pg_catalog.text := query::pg_catalog.text;
    answer pg_catalog.text[];
    fallback boolean;
    rows_keys {key_type}[];
    rows_distances pg_catalog.float8[];
    -- Where the key is in near.keys; null where the row waits.
    rows_places bigint[];
    keys {key_type}[];
    distances pg_catalog.float8[];
    scores pg_catalog.float8[];
    -- How many rows the last look returned.
    returned int;
    -- How many rows within max_distance the look before returned.
    settled int;
    -- Whether rows are ranked by their bits alone.
    by_bits boolean;
BEGIN
    {refuse_arguments}
    path := pg_catalog.current_setting('search_path');
    IF filter IS NOT NULL THEN
        -- The filter must fit between brackets here and between parentheses on the nodes. Text that closes one of them does not fit
        -- the other, so only a single expression passes.
        EXECUTE $sql$SELECT ARRAY[
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            ]::boolean[] FROM (SELECT s.*, $1 AS params FROM {source} s) s WHERE false$sql$ USING params;
    END IF;
    LOOP
        before := {moment}();
        near := {near}(query, k, reach, shortlist, recall, dial, times, again);
        IF near.fallback OPERATOR(pg_catalog.=) 'changed' THEN
            PERFORM foh._refuse_changed({name});
        END IF;
        -- A transaction that keeps one snapshot of the coordinator would not see what a pull has moved since.
        EXIT WHEN near.fallback IS NOT NULL OR NOT before.whole
                  OR pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed';
        fallback := false;
        rows_keys := '{}';
        rows_distances := '{}';
        rows_places := '{}';
        -- Citus finds the shard of a row by the hash of its key.
        FOR node IN
            SELECT n.token, n.shards, n.inboxes, w.keys, w.homes, w.places
            FROM (SELECT n.node, (pg_catalog.array_agg(n.token))[1] AS token, pg_catalog.array_agg(n.shard) AS shards, pg_catalog.array_agg(n.inbox) AS inboxes
                  FROM (SELECT pg_catalog.unnest(before.nodes) AS node, pg_catalog.unnest(before.tokens) AS token,
                               pg_catalog.unnest(before.shards) AS shard, pg_catalog.unnest(before.inboxes) AS inbox) n GROUP BY n.node) n
            CROSS JOIN LATERAL (SELECT pg_catalog.array_agg(w.key) AS keys, pg_catalog.array_agg(before.shards[w.at]) AS homes, pg_catalog.array_agg(w.place) AS places
                                FROM (SELECT w.key, w.place, pg_catalog.width_bucket(pg_catalog.worker_hash(w.key{key_collate}), before.firsts) AS at
                                      FROM pg_catalog.unnest(near.keys) WITH ORDINALITY AS w (key, place)) w
                                WHERE before.nodes[w.at] OPERATOR(pg_catalog.=) n.node) w
        LOOP
            SELECT {read}(node.shards, node.inboxes, node.keys, node.homes, node.places, query_text, k, max_distance, filter, params, path) INTO answer
            FROM {token} t WHERE t.key OPERATOR(pg_catalog.=) node.token;
            EXIT WHEN answer IS NULL;
            IF pg_catalog.cardinality(answer) OPERATOR(pg_catalog.=) 1 THEN
                fallback := true;
            ELSIF answer[1] IS NOT NULL THEN
                rows_keys := rows_keys OPERATOR(pg_catalog.||) answer[1]::{key_type}[];
                rows_distances := rows_distances OPERATOR(pg_catalog.||) answer[2]::pg_catalog.float8[];
                rows_places := rows_places OPERATOR(pg_catalog.||) answer[3]::pg_catalog.int8[];
            END IF;
        END LOOP;
        since := {moment}();
        CONTINUE WHEN answer IS NULL OR before.version OPERATOR(pg_catalog.<>) since.version OR before.placements OPERATOR(pg_catalog.<>) since.placements
                      OR coalesce(before.last, 0::pg_catalog.int8) OPERATOR(pg_catalog.<>) coalesce(since.last, 0::pg_catalog.int8);
        EXIT WHEN fallback;
        by_bits := near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL;
        -- Of a row that waits nobody knows yet of what kind it is.
        SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
        FROM (SELECT e.key, CASE WHEN NOT by_bits OR e.bits IS NULL THEN e.distance END AS distance,
                     {score}(CASE WHEN NOT by_bits THEN e.distance WHEN e.bits IS NULL THEN e.distance OPERATOR(pg_catalog./) near.scale ELSE {bit_score}(e.bits) END,
                             near.leans[e.place]) AS score
              FROM (SELECT f.key, f.distance, f.place, near.bits[f.place] AS bits
                    FROM (SELECT pg_catalog.unnest(rows_keys) AS key, pg_catalog.unnest(rows_distances) AS distance, pg_catalog.unnest(rows_places) AS place) f) e
              ORDER BY 3 LIMIT k) t;
        returned := coalesce(pg_catalog.cardinality(keys), 0);
        IF returned OPERATOR(pg_catalog.=) k OR returned OPERATOR(pg_catalog.=) settled THEN
            RETURN QUERY SELECT pg_catalog.unnest(keys), pg_catalog.unnest(distances), pg_catalog.unnest(scores);
            RETURN;
        END IF;
        EXIT WHEN near.exhausted;
        IF max_distance IS NULL THEN
            more := greatest(4, (3::bigint OPERATOR(pg_catalog.*) k) OPERATOR(pg_catalog./) greatest(2 OPERATOR(pg_catalog.*) returned, 1));
        ELSE
            -- A look at four times as much that finds no more ends the search, as it does for any other table.
            more := 4;
            settled := CASE WHEN filter IS NULL OR returned OPERATOR(pg_catalog.>) 0 THEN returned END;
        END IF;
        reach := least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int;
        times := least(times OPERATOR(pg_catalog.*) more, 10000000);
        again := true;
    END LOOP;
    RETURN QUERY SELECT (r.f).* FROM (SELECT {exact}(query, k, coalesce(filter, 'true'), params, max_distance) AS f) r;
END
$body$;
