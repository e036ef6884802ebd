-- Labels suggested for a vector: what the rows near it are called, and how likely each of these labels is.

-- foh: function chances, called by readers
-- The chance that a row has each of some labels, by their shares of its neighbors' votes and by its learned code, as held-out rows
-- have shown it (foh_pg/updater/chances.py). The shares themselves where no held-out row was asked yet.
-- The code leans towards a label as far as the label's projection says; labels that nothing was learned of do not count.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, names text[], shares float8[]) RETURNS float8[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
    model record;
    code {vector}.vector;
BEGIN
    SELECT m.chances, nullif({vector}.l2_distance(query, m.mean), 0) AS away INTO model
    FROM foh.model m WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id});
    IF model.chances IS NULL THEN
        RETURN shares;
    END IF;
    code := (SELECT array_agg(coalesce((-(p.weights OPERATOR({vector}.<#>) query) - p.bias) / model.away, 0)::real ORDER BY p.bit)::{vector}.vector FROM {projection} p);
    RETURN ARRAY(SELECT 1 / (1 + exp(-least(greatest(model.chances[1] + model.chances[2] * ln(n.share / (1 + {label_doubt} - n.share)) - model.chances[3] * coalesce(l.projection OPERATOR({vector}.<#>) code, 0), -50), 50)))
                 FROM unnest(names, shares) WITH ORDINALITY AS n (name, share, at)
                 LEFT JOIN foh.label l ON l.name = n.name AND l.index = {id} ORDER BY n.at);
END
$body$;

-- foh: fragment refuse_changed_labels
-- A search goes on where the column of the labels was renamed or dropped; suggestions cannot. In a transaction with one snapshot, where
-- foh._intact_in_plan knows nothing, looking at the catalog each time would cost more than a search.
    IF {table_missing} OR NOT foh._intact_in_plan({recorded_columns}) AND current_setting('transaction_isolation') LIKE 'read %' THEN
        PERFORM foh._refuse_if_changed({name}, false);
    END IF;

-- foh: fragment voting_rows
-- Reads keys, those of the rows that were found.
            SELECT array_position(keys, {row s.@}) AS place, {labels_read} AS names FROM {source_of_matching}

-- foh: fragment voting_rows, if distributed
-- Reads keys, those of the rows that were found.
            SELECT f.place, f.names FROM {found_labels}(keys) f

-- foh: function labels, called by readers
-- The k likeliest labels of a vector: the chance of each, and how many of the nearest rows with labels have it. The nearest rows vote, the
-- first with the most weight; rows without labels have no vote, and further rows are asked once where too many lack labels. What is wrong among
-- the nearest rows is wrong among the labels, so the search reads what the default recall takes, also where a plain search reads less.
-- without: a row that has no vote, for a suggestion to a row that has labels already. Runs with the rights of the caller: only labels
-- of rows that the caller can see count.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int DEFAULT 3, without {key_type} DEFAULT NULL)
RETURNS TABLE (label text, chance float8, neighbors int)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 3 COST 10000
SET search_path = pg_catalog, pg_temp
-- The lookup by key is pinned, as in a search.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    looked int;
    keys {key_type}[];
    names text[];
    shares float8[];
    votes int[];
    voters int;
BEGIN
    IF {signature_bits} = 0 THEN
        RAISE EXCEPTION 'foh: index % has no labels, so there are none to suggest', quote_literal({name}) USING ERRCODE = 'feature_not_supported',
            HINT = format('SELECT foh.refresh(%L, labels => ...) names the column that has them.', {name});
    END IF;
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, NULL, NULL, NULL, NULL);
    {refuse_changed_labels}
    FOREACH looked IN ARRAY ARRAY[{label_voters}, {label_voters} * {label_voters_times}] LOOP
        keys := ARRAY(SELECT {row r.k#} FROM {search}(query, looked + (without IS NOT NULL)::int, labels => 0, recall => {recall_default})
                                                 WITH ORDINALITY AS r ({each k#}, distance, score, place)
                      WHERE {row r.k#} IS DISTINCT FROM without ORDER BY r.place);
        WITH near AS MATERIALIZED (
            {voting_rows}
        ), voting AS MATERIALIZED (
            SELECT n.names, 1 / ({label_rank} + n.rank)::float8 AS weight
            FROM (SELECT d.names, row_number() OVER (ORDER BY d.place) AS rank
                  FROM (SELECT n.place, ARRAY(SELECT DISTINCT u.name FROM unnest(n.names) AS u (name) WHERE u.name IS NOT NULL) AS names FROM near n OFFSET 0) d
                  WHERE d.names <> '{}') n
            WHERE n.rank <= {label_voters}
        )
        SELECT array_agg(t.name), array_agg(t.weight / (SELECT sum(v.weight) FROM voting v)), array_agg(t.votes), (SELECT count(*) FROM voting)
        INTO names, shares, votes, voters
        FROM (SELECT u.name, sum(v.weight) AS weight, count(*)::int AS votes FROM voting v CROSS JOIN LATERAL unnest(v.names) AS u (name) GROUP BY u.name) t;
        EXIT WHEN voters = {label_voters} OR cardinality(keys) < looked;
    END LOOP;
    RETURN QUERY SELECT s.name, s.chance, s.votes
                 FROM unnest(names, {chances}(query, names, shares), votes) AS s (name, chance, votes)
                 ORDER BY s.chance DESC, s.votes DESC, s.name LIMIT k;
END
$body$;

-- foh: function suggest, called by readers
-- Labels for rows that have none: the k likeliest of each, for as many rows as wanted, in the order of the key and after after_key. A row
-- for which nothing can be said has one line without a label, so that the last key always leads on to the next rows.
CREATE OR REPLACE FUNCTION {self}(k int DEFAULT 3, wanted int DEFAULT 1000, after_key {key_type} DEFAULT NULL)
RETURNS TABLE (key {key_type}, label text, chance float8, neighbors int)
LANGUAGE plpgsql STABLE ROWS 3000 COST 10000
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $body$
#variable_conflict use_variable
DECLARE
    -- The columns of the key one by one: the nodes of a distributed table do not know its type.
    {each key_# ~;}
    {each after_# ~ := <after_key>;}
    x {vector}.vector;
BEGIN
    {refuse_changed_labels}
    FOR {each key_#}, x IN
        SELECT {each s.@}, {to_vector} FROM {source} s
        WHERE ({to_vector}) IS NOT NULL
          -- No label has an empty name. Citus refuses a subquery about the elements of labels that are a subquery themselves.
          AND coalesce(length(array_to_string({labels_read}, '')), 0) = 0
          AND (after_1 IS NULL OR ({each s.@}) > ({each after_#^}))
        ORDER BY {each s.@} LIMIT wanted
    LOOP
        key := {row key_#};
        RETURN QUERY SELECT key, l.label, l.chance, l.neighbors FROM (SELECT) one LEFT JOIN {labels}(x, k) l ON true;
    END LOOP;
END
$body$;

-- foh: function labels_answer, called by updaters
-- What is suggested, with the rights of the table's owner, for an updater that measures the index.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, without {key_type}) RETURNS TABLE (label text, chance float8, neighbors int)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
BEGIN
    PERFORM foh._open({tables_text});
    RETURN QUERY SELECT l.* FROM {labels}($1, $2, $3) l;
END
$body$;
