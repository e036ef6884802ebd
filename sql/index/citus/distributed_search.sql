-- The search of a distributed table: the same look-up as in any other search, on the coordinator, then one call for each node that has
-- shards (see node_read), which reads the rows found and those that wait there. VOLATILE, so that each step sees what is committed when
-- it begins. The search compares the moment before with the moment after, and begins again where something changed in between.
CREATE OR REPLACE FUNCTION {search}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                    filter text DEFAULT NULL, params jsonb DEFAULT NULL, code bit DEFAULT NULL, labels float8 DEFAULT NULL)
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
    answer pg_catalog.text[];
    fallback boolean;
    rows_keys {key_type}[];
    rows_scores pg_catalog.float8[];
    rows_wait boolean[];
    wait boolean[];
    keys {key_type}[];
    distances int[];
    scores pg_catalog.float8[];
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
        near := {near}(query, code, k, reach, shortlist, dial, times, again);
        IF near.fallback OPERATOR(pg_catalog.=) 'changed' THEN
            PERFORM foh._refuse_changed({name});
        END IF;
        -- A transaction that keeps one snapshot of the coordinator would not see what a pull has moved since.
        EXIT WHEN near.fallback IS NOT NULL OR NOT before.whole
                  OR pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed';
        fallback := false;
        rows_keys := '{}';
        rows_scores := '{}';
        rows_wait := '{}';
        FOR node IN SELECT n.token, n.shards, n.inboxes FROM {nodes}() n LOOP
            SELECT {read}(node.shards, node.inboxes, near.keys, query, near.scale, k, filter, params, path) INTO answer
            FROM {token} t WHERE t.key OPERATOR(pg_catalog.=) node.token;
            EXIT WHEN answer IS NULL;
            IF pg_catalog.cardinality(answer) OPERATOR(pg_catalog.=) 1 THEN
                fallback := true;
            END IF;
            -- Every three texts are arrays: keys, their scores, and whether each key waits.
            FOR part IN 0 .. pg_catalog.cardinality(answer) OPERATOR(pg_catalog./) 3 OPERATOR(pg_catalog.-) 1 LOOP
                keys := answer[3 OPERATOR(pg_catalog.*) part OPERATOR(pg_catalog.+) 1];
                scores := answer[3 OPERATOR(pg_catalog.*) part OPERATOR(pg_catalog.+) 2];
                wait := answer[3 OPERATOR(pg_catalog.*) part OPERATOR(pg_catalog.+) 3];
                rows_keys := rows_keys OPERATOR(pg_catalog.||) keys;
                rows_scores := rows_scores OPERATOR(pg_catalog.||) scores;
                rows_wait := rows_wait OPERATOR(pg_catalog.||) wait;
            END LOOP;
        END LOOP;
        since := {moment}();
        CONTINUE WHEN answer IS NULL OR before.version OPERATOR(pg_catalog.<>) since.version OR before.placements OPERATOR(pg_catalog.<>) since.placements
                      OR coalesce(before.last, 0::pg_catalog.int8) OPERATOR(pg_catalog.<>) coalesce(since.last, 0::pg_catalog.int8);
        EXIT WHEN fallback;
        SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
        FROM (SELECT e.key, e.distance,
                     CASE WHEN e.distance IS NOT NULL AND (near.ranked OPERATOR(pg_catalog.=) 0 OR e.score IS NULL) THEN {bit_score}(e.distance) ELSE e.score END
                         OPERATOR(pg_catalog.+) coalesce(e.lean, 0::pg_catalog.float8) AS score
              FROM (SELECT DISTINCT ON (f.key) f.key, f.score,
                           CASE WHEN NOT f.waits THEN n.distance WHEN query IS NULL THEN h.distance END AS distance,
                           CASE WHEN f.waits THEN m.lean ELSE n.lean END AS lean
                    FROM (SELECT pg_catalog.unnest(rows_keys) AS key, pg_catalog.unnest(rows_scores) AS score, pg_catalog.unnest(rows_wait) AS waits) f
                    LEFT JOIN (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.distances) AS distance, pg_catalog.unnest(near.leans) AS lean) n
                        ON n.key OPERATOR(pg_catalog.=) f.key
                    CROSS JOIN (SELECT pg_catalog.avg(l) AS lean FROM pg_catalog.unnest(near.leans) l) m
                    -- A query given as bits is compared with the bits of the rows that wait.
                    LEFT JOIN {hamming}(CASE WHEN query IS NULL THEN ARRAY(SELECT w.key FROM (SELECT pg_catalog.unnest(rows_keys) AS key, pg_catalog.unnest(rows_wait) AS waits) w WHERE w.waits) END,
                                        pg_catalog.substring(code, 1, {geometry_bits})) h ON h.key OPERATOR(pg_catalog.=) f.key
                    -- A row that waits is newer than what the lists hold of it.
                    ORDER BY f.key, f.waits DESC) e
              ORDER BY 3 LIMIT k) t;
        IF pg_catalog.cardinality(keys) OPERATOR(pg_catalog.=) k THEN
            RETURN QUERY SELECT pg_catalog.unnest(keys), pg_catalog.unnest(distances), pg_catalog.unnest(scores);
            RETURN;
        END IF;
        EXIT WHEN near.exhausted;
        more := greatest(4, (3::bigint OPERATOR(pg_catalog.*) k) OPERATOR(pg_catalog./) greatest(2 OPERATOR(pg_catalog.*) pg_catalog.cardinality(keys), 1));
        reach := least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int;
        times := least(times OPERATOR(pg_catalog.*) more, 10000000);
        again := true;
    END LOOP;
    RETURN QUERY SELECT (r.f).* FROM (SELECT {exact}(query, code, k, coalesce(filter, 'true'), params, near.scale) AS f) r;
END
$body$;
