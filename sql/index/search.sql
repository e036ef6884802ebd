-- The search that users call, with their own rights.

-- foh: function dial_factor, called by readers
-- The factor of the learned weights that the argument labels of a search stands for: none at 0, one at a half, fifty near 1; option dial where it is null.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of the caller, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {self}(labels float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT {dial_factor_of}
$body$;

-- foh: function exact_distance, called by readers
-- The distance of a row from a query, by the index's metric, as the operators of pgvector give it.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of the caller, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {self}(x {vector}.vector, query {vector}.vector) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT {exact_distance_of}
$body$;

-- foh: function score, called by readers
-- What a row is ranked by: its distance, and what the labels add to it. A row of another kind than the query counts as if it were so many
-- times farther away, so a row at distance 0 stays first. A negative inner product grows, too.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of the caller, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {self}(distance float8, lean float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT $1 OPERATOR(pg_catalog.+) (coalesce($2, 0::pg_catalog.float8) OPERATOR(pg_catalog.*) pg_catalog.abs($1))
$body$;

-- foh: function bit_score, called by readers
-- The score of a row of which only the estimate from bits is known: on the scale of the exact distance.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of the caller, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {self}(distance int) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT $1::pg_catalog.float8 OPERATOR(pg_catalog.*) {bit_distance}
$body$;

-- foh: fragment refuse_arguments
-- The first thing in every search. Reads its arguments query, k, probes, shortlist, labels and recall. It stands here in full since a call
    -- would cost every search.
    -- pgvector may have moved to another schema since this function was made; nothing below would be found then.
    IF pg_catalog.to_regtype({vector_text} OPERATOR(pg_catalog.||) '.vector') IS NULL THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    IF query IS NULL OR {vector}.vector_dims(query) OPERATOR(pg_catalog.<>) {dimensions} OR k IS NULL
       OR k OPERATOR(pg_catalog.<) 1 OR probes OPERATOR(pg_catalog.<) 1 OR shortlist OPERATOR(pg_catalog.<) 0
       OR labels OPERATOR(pg_catalog.<) 0::pg_catalog.float8 OR labels OPERATOR(pg_catalog.>) 1::pg_catalog.float8
       OR recall OPERATOR(pg_catalog.<=) 0::pg_catalog.float8 OR recall OPERATOR(pg_catalog.>) 1::pg_catalog.float8 THEN
        PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, probes, shortlist, labels, recall);
    END IF;

-- foh: fragment asked_rows
-- After FROM: the rows s that fulfil condition. A filter, and nothing else, may name params. The plan is simpler without them.
            CASE WHEN filter IS NULL THEN
                $sql$(SELECT {row s.@} AS key, {to_vector} AS x FROM {source} s WHERE $sql$ OPERATOR(pg_catalog.||) condition OPERATOR(pg_catalog.||) ') s'
            ELSE $sql$(SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT {row s.@} AS key, {to_vector} AS x FROM {source} s WHERE (
                $sql$ OPERATOR(pg_catalog.||) condition OPERATOR(pg_catalog.||) $sql$
            ) OFFSET 0) s$sql$ END

-- foh: function exact, called by readers
-- The answer where the lists cannot give a full one: the source itself, ordered by the exact distance.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, filter text, params jsonb, max_distance float8)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
-- A scan is wanted here; the search that calls this function has switched scans off for its lookups.
SET enable_seqscan = on
SET enable_bitmapscan = on
SET enable_hashjoin = on
SET enable_mergejoin = on
AS $body$
BEGIN
    RETURN QUERY EXECUTE $sql$
        SELECT {each <e.key>}, e.distance, e.distance
        FROM (SELECT s.key, {exact_distance}(s.x, $1) AS distance
              FROM (SELECT $2 AS params) v
              CROSS JOIN LATERAL (SELECT {row s.@} AS key, {to_vector} AS x FROM {source} s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        ) OFFSET 0) s WHERE s.x IS NOT NULL OFFSET 0) e
        WHERE $4 IS NULL OR e.distance OPERATOR(pg_catalog.<=) $4 ORDER BY e.distance, e.key LIMIT $3$sql$ USING query, params, k, max_distance;
END
$body$;

-- foh: function exact_few, called by readers
-- The answer where few rows pass a condition: these rows, found by whatever index the application has for it, in the order of the exact distance.
-- Null where more than most rows pass, whatever PostgreSQL has estimated. asked_rows: see the fragment of that name.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, asked_rows text, params jsonb, max_distance float8, most bigint,
                                       OUT keys {key_type}[], OUT distances float8[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = on
SET enable_bitmapscan = on
SET enable_hashjoin = on
SET enable_mergejoin = on
AS $body$
#variable_conflict use_variable
BEGIN
    EXECUTE $sql$
        SELECT coalesce(pg_catalog.array_agg(s.key), '{}'), pg_catalog.array_agg(s.distance)
        FROM (SELECT s.key, {exact_distance}(s.x, $2) AS distance FROM $sql$ OPERATOR(pg_catalog.||) asked_rows OPERATOR(pg_catalog.||) $sql$
              LIMIT $3 OPERATOR(pg_catalog.+) 1) s$sql$ INTO keys, distances USING params, query, most;
    IF pg_catalog.cardinality(keys) OPERATOR(pg_catalog.>) most THEN
        keys := NULL;
        RETURN;
    END IF;
    SELECT coalesce(pg_catalog.array_agg(t.key), '{}'), pg_catalog.array_agg(t.distance) INTO keys, distances
    FROM (SELECT d.key, d.distance FROM (SELECT pg_catalog.unnest(keys) AS key, pg_catalog.unnest(distances) AS distance) d
          WHERE d.distance IS NOT NULL AND (max_distance IS NULL OR d.distance OPERATOR(pg_catalog.<=) max_distance)
          ORDER BY 2, 1 LIMIT k) t;
END
$body$;

-- foh: function rank_matching, called by readers
-- Those of the keys whose rows fulfil tests (see foh._matched), ranked, with the rights of the caller. search does the same by a statement that has the
-- condition as text, and must be planned every time; this one is planned once.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, tests jsonb, max_distance float8, scale float8, bits int[], leans float8[],
                                           INOUT keys {key_type}[], OUT distances float8[], OUT scores float8[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
{pinned_plans}
AS $body$
#variable_conflict use_variable
DECLARE
    labels_any constant text[] := tests ->> 'labels_any';
    labels_all constant text[] := tests ->> 'labels_all';
    labels_none constant text[] := tests ->> 'labels_none';
    labelled constant boolean := num_nonnulls(labels_any, labels_all, labels_none) > 0;
    {row_match_declared}
BEGIN
    {row_match_read}
    IF bits IS NULL AND leans IS NULL THEN
        SELECT array_agg(t.key), array_agg(t.distance) INTO keys, distances
        FROM (SELECT d.key, d.distance
              FROM (SELECT u.key, {exact_distance}(u.x, query) AS distance
                    FROM (SELECT {row s.@} AS key, {to_vector} AS x, CASE WHEN labelled THEN {labels_read} END AS labels{included , s.@::~ AS included_#} FROM {source_of_matching} OFFSET 0) u
                    WHERE u.x IS NOT NULL AND {row_passing} OFFSET 0) d
              WHERE max_distance IS NULL OR d.distance <= max_distance
              ORDER BY 2 LIMIT k) t;
        scores := distances;
        RETURN;
    END IF;
    SELECT array_agg(t.key), array_agg(t.distance), array_agg(t.score) INTO keys, distances, scores
    FROM (SELECT d.key, CASE WHEN d.bits IS NULL THEN d.distance END AS distance,
                 {score}(CASE WHEN d.bits IS NULL THEN d.distance / scale ELSE {bit_score}(d.bits) END, d.lean) AS score
          FROM (SELECT u.key, u.bits, u.lean, {exact_distance}(u.x, query) AS distance
                FROM (SELECT e.key, e.bits, e.lean, w.x, w.labels{included , w.included_#}
                      FROM (SELECT unnest(keys) AS key, unnest(bits) AS bits, unnest(leans) AS lean) e
                      CROSS JOIN LATERAL (SELECT {to_vector} AS x, CASE WHEN labelled THEN {labels_read} END AS labels{included , s.@::~ AS included_#}
                                          FROM {source} s WHERE {s_is_e} OFFSET 0) w) u
                WHERE u.x IS NOT NULL AND {row_passing} OFFSET 0) d
          WHERE max_distance IS NULL OR d.distance <= max_distance
          ORDER BY 3 LIMIT k) t;
END
$body$;

-- foh: fragment ask_match
-- Reads match and filter; sets what the lists can tell of them, and what rows must fulfil.
        matched := foh._matched({name}, {included_text}, {label_conditions_text}, match);
        tests := matched.tests;
        IF tests OPERATOR(pg_catalog.?|) ARRAY['labels_any', 'labels_all'] THEN
            -- All rows that pass are of a kind that is wanted: which of them are of the query's kind does not matter.
            dial := 0;
        END IF;
        condition := CASE WHEN filter IS NULL THEN matched.condition
                          ELSE matched.condition OPERATOR(pg_catalog.||) ' AND (' OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) E'\n)' END;

-- foh: fragment look_further
-- Returns keys, distances and scores where there are enough of them, and leaves the loop where the lists have no more. Sets how much more to read.
        returned := coalesce(pg_catalog.cardinality(keys), 0);
        IF returned OPERATOR(pg_catalog.=) k OR returned OPERATOR(pg_catalog.=) settled THEN
            RETURN QUERY SELECT {each <pg_catalog.unnest(keys)>}, pg_catalog.unnest(distances), pg_catalog.unnest(scores);
            RETURN;
        END IF;
        EXIT WHEN near.exhausted;
        IF max_distance IS NULL THEN
            -- Rows are missing: deleted, hidden by a policy or by the filter, or in other lists. The share of rows that passed
            -- says how many more to read.
            more := greatest(4, (3::bigint OPERATOR(pg_catalog.*) k) OPERATOR(pg_catalog./) greatest(2 OPERATOR(pg_catalog.*) returned, 1));
        ELSE
            -- Or there are no more within that distance: a look at four times as much that finds none says so. A filter that let
            -- nothing pass says nothing about the distance.
            more := 4;
            settled := CASE WHEN condition IS NULL OR returned OPERATOR(pg_catalog.>) 0 THEN returned END;
        END IF;
        times := least(times OPERATOR(pg_catalog.*) more, 10000000);

-- foh: function search, called by readers
-- The rows nearest to the query by distance and by labels, with the caller's rights on the source. filter is a condition over the columns
-- of the source, written by the application's author; values of its users go in through params, which the filter reads as
-- params ->> 'name'. labels, from 0 to 1, says how much the labels count: 0 asks for the nearest vectors and nothing else, 1 for the rows
-- likeliest to share a label. recall, up to 1, asks for so much of the exact answer; 1 reads the source itself. max_distance: no row
-- farther than that; fewer than k rows come back where there are fewer. match: a condition on included columns and labels, as data, such as
-- {"price": {"<": 100}, "status": ["new", "used"]}: lists answer it without a look at the rows.
-- distance: that of the row from the query, by the index's metric; null where nothing was read from the source (shortlist 0). score: what
-- the rows are ordered by, the distance and what the labels add to it.
-- There is no SET search_path: the filter must see the functions that its author sees. So our own code
-- names every operator and function with its schema.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                    filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL,
                                    recall float8 DEFAULT NULL, max_distance float8 DEFAULT NULL, match jsonb DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 COST 10000
{pinned_plans}
AS $body$
#variable_conflict use_variable
DECLARE
    near pg_catalog.record;
    dial pg_catalog.float8 := {dial_factor}(labels);
    -- What rows must fulfil, in SQL over the row s; null where nothing is asked. What of it the lists can tell.
    condition pg_catalog.text;
    asked_rows pg_catalog.text;
    matched pg_catalog.record;
    tests pg_catalog.jsonb;
    -- Whether rows are tested by a statement of ours. It reads all columns that match may name, so who may read some of them alone has the other.
    typed boolean := false;
    -- How a condition is best answered, and about how many of the rows pass it.
    way pg_catalog.record;
    share pg_catalog.float8;
    -- How many times k rows are looked at, since some rows do not pass the filter.
    times bigint := 1;
    more bigint;
    keys {key_type}[];
    distances pg_catalog.float8[];
    scores pg_catalog.float8[];
    -- How many rows the last look returned.
    returned int;
    -- How many rows within max_distance the look before returned.
    settled int;
BEGIN
    {refuse_arguments}
    IF filter IS NOT NULL AND pg_catalog.to_regclass({source_text}) IS NULL OR match IS NOT NULL AND {table_missing} THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    IF filter IS NOT NULL THEN
        -- The filter must fit between brackets here and between parentheses below. Text that closes one of them does not fit the
        -- other, so only a single expression passes.
        EXECUTE $sql$SELECT FROM (SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT ARRAY[
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            ]::boolean[] FROM {source} s WHERE false) s$sql$ USING params;
        condition := filter;
    END IF;
    IF match IS NOT NULL THEN
        -- The rows are tested again, by all columns that can be asked for. In a transaction with one snapshot, where
        -- foh._intact_in_plan knows nothing, looking at the catalog each time would cost more than a search.
        IF NOT foh._intact_in_plan({recorded_columns})
           AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.~~) 'read %'::pg_catalog.text THEN
            PERFORM foh._refuse_if_changed({name}, true);
        END IF;
        {ask_match}
        typed := filter IS NULL AND {tables_readable};
    END IF;
    IF condition IS NOT NULL THEN
        -- Rows may be read below without a look into the lists, which tells a changed table otherwise.
        IF NOT foh._intact_in_plan({recorded}) THEN
            near := {near}(query, 1, 1, 0, NULL, 0, 1, false);
            IF near.fallback OPERATOR(pg_catalog.=) 'changed' THEN
                PERFORM foh._refuse_changed({name});
            END IF;
        END IF;
        asked_rows := {asked_rows};
        way := foh._way(foh._planned('SELECT FROM ' OPERATOR(pg_catalog.||) asked_rows, params), foh._rows_of({item_text}::pg_catalog.regclass), k, {dimensions},
            -- Rows that are read exactly are ranked by distance alone, as in a small index.
            CASE WHEN dial OPERATOR(pg_catalog.>) 0::pg_catalog.float8 THEN {exact_rows} END, filter IS NOT NULL);
        share := way.share;
        IF way.most IS NOT NULL AND coalesce(shortlist OPERATOR(pg_catalog.<>) 0, true) THEN
            SELECT f.keys, f.distances INTO keys, distances FROM {exact_few}(query, k, asked_rows, params, max_distance, way.most) f;
            IF keys IS NOT NULL THEN
                RETURN QUERY SELECT {each <pg_catalog.unnest(keys)>}, pg_catalog.unnest(distances), pg_catalog.unnest(distances);
                RETURN;
            END IF;
            -- PostgreSQL was wrong: how many rows pass is not known.
            share := 0.25;
            way.worth := NULL;
        END IF;
        -- What the lists can tell need not be looked up.
        IF tests IS NULL THEN
            times := least(pg_catalog.ceil(1 OPERATOR(pg_catalog./) share), 10000000);
        ELSIF filter IS NOT NULL OR tests OPERATOR(pg_catalog.?) 'labels_none' THEN
            times := 4;
        END IF;
    END IF;
    IF tests IS NULL THEN
        near := {near}(query, k, probes, shortlist, recall, dial, times, false, share);
    ELSE
        near := {near_matching}(query, k, probes, shortlist, recall, dial, times, false, share, tests, way.worth);
    END IF;
    IF near.fallback OPERATOR(pg_catalog.=) 'changed' THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    WHILE near.fallback IS NULL LOOP
        -- What the lists told is tested on the row again: where triggers did not fire, the lists may have told something else.
        IF typed THEN
            SELECT r.keys, r.distances, r.scores INTO keys, distances, scores
            FROM {rank_matching}(query, k, tests, max_distance, CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.scale ELSE 1::pg_catalog.float8 END,
                                 CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.bits END, near.leans, near.keys) r;
        ELSIF condition IS NOT NULL THEN
            EXECUTE $sql$
                SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score)
                FROM (SELECT d.key, CASE WHEN d.bits IS NULL THEN d.distance END AS distance,
                             {score}(CASE WHEN d.bits IS NULL THEN d.distance OPERATOR(pg_catalog./) $8 ELSE {bit_score}(d.bits) END, d.lean) AS score
                      FROM (SELECT e.key, e.bits, e.lean, {exact_distance}(s.x, $1) AS distance
                            FROM (SELECT $2 AS params, pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS bits, pg_catalog.unnest($5) AS lean) e
                            CROSS JOIN LATERAL (SELECT {to_vector} AS x FROM {source} s WHERE {s_is_e} AND (
                                $sql$ OPERATOR(pg_catalog.||) condition OPERATOR(pg_catalog.||) $sql$
                            ) OFFSET 0) s
                            WHERE s.x IS NOT NULL OFFSET 0) d
                      WHERE $6 IS NULL OR d.distance OPERATOR(pg_catalog.<=) $6
                      ORDER BY 3 LIMIT $7) t$sql$
                INTO keys, distances, scores
                USING query, params, near.keys, CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.bits END, near.leans, max_distance, k,
                      CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.scale ELSE 1::pg_catalog.float8 END;
        ELSIF near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN
            -- Usually the caller can see all rows that were found: one check covers them all.
            RETURN QUERY SELECT {each <e.key>}, NULL::pg_catalog.float8, {score}({bit_score}(e.bits), e.lean)
                         FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.bits) AS bits, pg_catalog.unnest(near.leans) AS lean) e
                         WHERE pg_catalog.cardinality(near.keys) OPERATOR(pg_catalog.=) k AND pg_catalog.array_position(near.bits, NULL) IS NULL
                           AND NOT EXISTS (SELECT FROM (SELECT pg_catalog.unnest(near.keys) AS key) e
                                           WHERE NOT EXISTS (SELECT FROM {source} s WHERE {s_is_e} OFFSET 0));
            IF FOUND THEN
                RETURN;
            END IF;
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT d.key, d.distance, {score}(coalesce(d.distance OPERATOR(pg_catalog./) near.scale, {bit_score}(d.bits)), d.lean) AS score
                  FROM (SELECT e.key, e.bits, e.lean, CASE WHEN e.bits IS NULL THEN {exact_distance}(s.x, query) END AS distance
                        FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.bits) AS bits, pg_catalog.unnest(near.leans) AS lean) e
                        CROSS JOIN LATERAL (SELECT CASE WHEN e.bits IS NULL THEN {to_vector} END AS x FROM {source} s WHERE {s_is_e} OFFSET 0) s
                        WHERE e.bits IS NOT NULL OR s.x IS NOT NULL OFFSET 0) d
                  ORDER BY 3 LIMIT k) t;
        ELSIF near.leans IS NULL THEN
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance) INTO keys, distances
            FROM (SELECT d.key, d.distance
                  FROM (SELECT r.key, {exact_distance}(r.x, query) AS distance
                        FROM (SELECT {row s.@} AS key, {to_vector} AS x FROM {source_of_near} OFFSET 0) r
                        WHERE r.x IS NOT NULL OFFSET 0) d
                  WHERE max_distance IS NULL OR d.distance OPERATOR(pg_catalog.<=) max_distance
                  ORDER BY 2 LIMIT k) t;
            scores := distances;
        ELSE
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT d.key, d.distance, {score}(d.distance, d.lean) AS score
                  FROM (SELECT e.key, e.lean, {exact_distance}(s.x, query) AS distance
                        FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.leans) AS lean) e
                        CROSS JOIN LATERAL (SELECT {to_vector} AS x FROM {source} s WHERE {s_is_e} OFFSET 0) s
                        WHERE s.x IS NOT NULL OFFSET 0) d
                  WHERE max_distance IS NULL OR d.distance OPERATOR(pg_catalog.<=) max_distance
                  ORDER BY 3 LIMIT k) t;
        END IF;
        {look_further}
        IF tests IS NULL THEN
            near := {near}(query, k, least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int, shortlist, recall, dial, times, true);
        ELSE
            near := {near_matching}(query, k, least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int, shortlist, recall, dial, times, true, share, tests);
        END IF;
    END LOOP;
    RETURN QUERY SELECT (r.f).* FROM (SELECT {exact}(query, k, coalesce(condition, 'true'), params, max_distance) AS f) r;
END
$body$;
