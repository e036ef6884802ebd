-- Distributed tables of Citus, searching: these functions stand in for those of the same name, and ask what citus_nodes.sql puts on every node.

-- foh: function moment, if distributed, called by readers
-- What a search compares before and after it has asked the nodes, and where the shards are. If version, last and placements have not
-- changed, no pull has taken anything out of the inbox and no shard has moved in between. Numbers of placements only grow, so their sum
-- grows with every move. whole: all shards are known. The arrays have a place for each shard, in the order of the hashes in them.
CREATE OR REPLACE FUNCTION {self}(OUT version bigint, OUT last bigint, OUT placements numeric, OUT whole boolean,
                                    OUT shards bigint[], OUT inboxes bigint[], OUT tokens {home ~}[], OUT firsts int[], OUT nodes int[])
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    SELECT i.version, (SELECT t.seq FROM {stream} t ORDER BY t.seq DESC LIMIT 1), p.placements,
           cardinality(p.shards) = (SELECT count(*) FROM pg_dist_shard d WHERE d.logicalrelid = {source_oid}::oid::regclass),
           p.shards, p.inboxes, p.tokens, p.firsts, p.nodes
    INTO version, last, placements, whole, shards, inboxes, tokens, firsts, nodes
    FROM foh.index i,
         (SELECT sum(p.placementid) AS placements, array_agg(p.shard) AS shards, array_agg(p.inbox) AS inboxes, array_agg(p.token) AS tokens,
                 array_agg(p.first) AS firsts, array_agg(p.groupid) AS nodes
          FROM (SELECT s.*, p.placementid, p.groupid FROM {shard} s JOIN pg_dist_placement p ON p.shardid = s.shard AND p.shardstate = 1 ORDER BY s.first) p) p
    WHERE i.id = {id};
END
$body$;

-- foh: function exact, if distributed, called by readers
-- The answer where the lists cannot give a full one: every shard sends its nearest rows.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, filter text, params jsonb, max_distance float8)
RETURNS SETOF {result}
LANGUAGE plpgsql VOLATILE ROWS 10
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
BEGIN
    RETURN QUERY EXECUTE $sql$
        SELECT {each s.k#}, {node_distance} AS distance, {node_distance} AS score
        FROM (SELECT $2 AS params) v CROSS JOIN LATERAL (SELECT {each s.@ AS k#}, {to_vector} AS x FROM {source} s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        )) s WHERE s.x IS NOT NULL AND ($4 IS NULL OR {node_distance} OPERATOR(pg_catalog.<=) $4) ORDER BY distance, {each s.k#} LIMIT $3$sql$ USING query, params, k, max_distance;
END
$body$;

-- foh: function only_shard, if distributed, called by readers
-- The only shard that has rows for which a filter may hold, as Citus plans the statement; null where there are several, or none.
CREATE OR REPLACE FUNCTION {self}(filter text, params jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $body$
DECLARE
    plan pg_catalog.json;
BEGIN
    EXECUTE $sql$EXPLAIN (FORMAT JSON, COSTS OFF) SELECT FROM (SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT FROM {source} s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        )) s$sql$ INTO plan USING params;
    RETURN (SELECT d.shardid FROM pg_catalog.jsonb_path_query(plan::pg_catalog.jsonb, '$.**?(@."Task Count" == 1)."Tasks".**."Relation Name"') AS r (name)
            JOIN pg_catalog.pg_dist_shard d ON d.shardid OPERATOR(pg_catalog.=) pg_catalog.substring(r.name OPERATOR(pg_catalog.#>>) '{}', '[0-9]+$')::bigint
            WHERE d.logicalrelid OPERATOR(pg_catalog.=) {source_oid}::pg_catalog.oid LIMIT 1);
END
$body$;

-- foh: function search, if distributed, called by readers
-- The search of a distributed table: the same look-up as in any other search, on the coordinator, then one call for each node that has
-- shards (see node_read), which reads the rows found and those that wait there. VOLATILE, so that each step sees what is committed when
-- it begins. The search compares the moment before with the moment after, and begins again where something changed in between.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                    filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL,
                                    recall float8 DEFAULT NULL, max_distance float8 DEFAULT NULL, match jsonb DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql VOLATILE ROWS 10 COST 10000
-- Nothing is written: a node needs no transaction around what it is asked.
SET citus.function_opens_transaction_block = off
-- Planned once: Citus chooses the node when the plan is run.
SET plan_cache_mode = force_generic_plan
SET jit = off{iso_dates}
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
    times bigint := CASE WHEN filter IS NULL AND match IS NULL THEN 1 ELSE 4 END;
    again boolean := false;
    matched pg_catalog.record;
    -- What the lists can tell of match; and filter and match in SQL, for the nodes.
    tests pg_catalog.jsonb;
    condition pg_catalog.text;
    -- The values that match asks the distribution column for; the only shard that Citus finds the filter to need; and the shards to ask.
    homes {home ~}[];
    sole bigint;
    asked bigint[];
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
        IF pg_catalog.to_regclass({source_text}) IS NULL THEN
            PERFORM foh._refuse_changed({name});
        END IF;
        -- The filter must fit between brackets here and between parentheses on the nodes. Text that closes one of them does not fit
        -- the other, so only a single expression passes.
        EXECUTE $sql$SELECT FROM (SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT ARRAY[
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            ]::boolean[] FROM {source} s WHERE false) s$sql$ USING params;
        condition := filter;
        -- A filter with a query of its own could be about other tables.
        IF pg_catalog.strpos(filter, {home_column}) OPERATOR(pg_catalog.>) 0 AND filter OPERATOR(pg_catalog.!~*) 'select' THEN
            sole := {only_shard}(filter, params);
        END IF;
    END IF;
    IF match IS NOT NULL THEN
        {ask_match}
        IF filter IS NULL AND NOT tests OPERATOR(pg_catalog.?) 'labels_none' THEN
            times := 1;
        END IF;
        homes := {homes_asked};
    END IF;
    LOOP
        before := {moment}();
        IF tests IS NULL THEN
            near := {near}(query, k, reach, shortlist, recall, dial, times, again);
        ELSE
            -- The coordinator has no statistics of the rows: how many of them pass is not known.
            near := {near_matching}(query, k, reach, shortlist, recall, dial, times, again, 0.25, tests);
        END IF;
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
        -- Citus finds the shard of a row by the hash of its distribution column. A condition on that column asks the nodes of its shards alone.
        asked := CASE WHEN homes IS NOT NULL
                      THEN ARRAY(SELECT before.shards[pg_catalog.width_bucket(pg_catalog.worker_hash(a.home{home ^}), before.firsts)] FROM pg_catalog.unnest(homes) AS a (home))
                      WHEN sole OPERATOR(pg_catalog.=) ANY (before.shards) THEN ARRAY[sole] ELSE before.shards END;
        answer := '{}';
        FOR node IN
            SELECT n.token, n.shards, n.inboxes, {each w.keys_#}, w.homes, w.places
            FROM (SELECT n.node, (pg_catalog.array_agg(n.token))[1] AS token, pg_catalog.array_agg(n.shard) AS shards, pg_catalog.array_agg(n.inbox) AS inboxes
                  FROM (SELECT pg_catalog.unnest(before.nodes) AS node, pg_catalog.unnest(before.tokens) AS token,
                               pg_catalog.unnest(before.shards) AS shard, pg_catalog.unnest(before.inboxes) AS inbox) n
                  WHERE n.shard OPERATOR(pg_catalog.=) ANY (asked) GROUP BY n.node) n
            CROSS JOIN LATERAL (SELECT {each pg_catalog.array_agg(<e.key>) AS keys_#}, pg_catalog.array_agg(before.shards[e.at]) AS homes, pg_catalog.array_agg(e.place) AS places
                                FROM (SELECT e.key, e.place, pg_catalog.width_bucket(pg_catalog.worker_hash({home <e.key>^}), before.firsts) AS at
                                      FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.generate_subscripts(near.keys, 1)::bigint AS place) e) e
                                WHERE before.shards[e.at] OPERATOR(pg_catalog.=) ANY (n.shards)) w
        LOOP
            SELECT {read}(node.shards, node.inboxes, {each node.keys_#}, node.homes, node.places, query_text, k, max_distance, condition, params, path) INTO answer
            FROM {token} t WHERE t.key OPERATOR(pg_catalog.=) node.token;
            EXIT WHEN answer IS NULL;
            IF pg_catalog.cardinality(answer) OPERATOR(pg_catalog.=) 1 THEN
                fallback := true;
            ELSIF answer[1] IS NOT NULL THEN
                rows_keys := rows_keys OPERATOR(pg_catalog.||) ARRAY(SELECT {row u.k#} FROM (SELECT {each pg_catalog.unnest(answer[2 OPERATOR(pg_catalog.+) #]::~[]) AS k#}) u);
                rows_distances := rows_distances OPERATOR(pg_catalog.||) answer[1]::pg_catalog.float8[];
                rows_places := rows_places OPERATOR(pg_catalog.||) answer[2]::pg_catalog.int8[];
            END IF;
        END LOOP;
        since := {moment}();
        CONTINUE WHEN answer IS NULL OR before.version OPERATOR(pg_catalog.<>) since.version OR before.placements OPERATOR(pg_catalog.<>) since.placements
                      OR coalesce(before.last, 0::pg_catalog.int8) OPERATOR(pg_catalog.<>) coalesce(since.last, 0::pg_catalog.int8);
        EXIT WHEN fallback;
        by_bits := near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL;
        -- Of what kind a row is that waits is not known yet.
        SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
        FROM (SELECT e.key, CASE WHEN NOT by_bits OR e.bits IS NULL THEN e.distance END AS distance,
                     {score}(CASE WHEN NOT by_bits THEN e.distance WHEN e.bits IS NULL THEN e.distance OPERATOR(pg_catalog./) near.scale ELSE {bit_score}(e.bits) END,
                             near.leans[e.place]) AS score
              FROM (SELECT f.key, f.distance, f.place, near.bits[f.place] AS bits
                    FROM (SELECT pg_catalog.unnest(rows_keys) AS key, pg_catalog.unnest(rows_distances) AS distance, pg_catalog.unnest(rows_places) AS place) f) e
              ORDER BY 3 LIMIT k) t;
        {look_further}
        reach := least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int;
        again := true;
    END LOOP;
    RETURN QUERY SELECT (r.f).* FROM (SELECT {exact}(query, k, coalesce(condition, 'true'), params, max_distance) AS f) r;
END
$body$;

-- foh: function candidates, if distributed, called by readers
-- The rows in the lists of the nearest centers, for the caller to order, read with the caller's rights; and the rows that wait in the
-- inbox. The score is an estimate from the bits alone, null for rows that wait and where the lists cannot answer; there is no distance.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, probes int DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql VOLATILE ROWS 1000 COST 10000
SET search_path = pg_catalog, pg_temp{iso_dates}
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
#variable_conflict use_column
DECLARE
    near record;
    {each keys_# ~[];}
    condition text := '';
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims($1), 1, $2, NULL, NULL, NULL);
    near := {near}($1, 10000000, $2, 0, NULL, 0, 1, false);
    IF near.fallback = 'changed' THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    IF near.fallback IS NULL THEN
        SELECT {each pg_catalog.array_agg(<e.key>) AS keys_#} INTO {each keys_#}
        FROM (SELECT unnest(near.keys) AS key UNION SELECT {inbox_keys}()) e;
        condition := $sql$ AND {s_is_among}$sql$;
    END IF;
    EXECUTE $sql$SELECT {each array_agg(s.@)} FROM {source} s WHERE s.{embedding} IS NOT NULL$sql$ || condition INTO {each keys_#} USING {each keys_#};
    RETURN QUERY SELECT {each <e.key>}, NULL::float8, CASE WHEN e.bits IS NOT NULL THEN {bit_score}(e.bits) END
                 FROM (SELECT u.key, n.bits FROM (SELECT {row u.k#} AS key FROM (SELECT {each pg_catalog.unnest(keys_#) AS k#}) u) u
                       LEFT JOIN (SELECT unnest(near.keys) AS key, unnest(near.bits) AS bits) n ON n.key = u.key) e;
END
$body$;
