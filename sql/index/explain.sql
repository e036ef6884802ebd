-- What a search reads and how it is answered, and what a client must know of the index.

-- foh: function candidates, called by readers
-- The rows in the lists of the nearest centers, for the caller to order, read with the caller's rights.
-- The score is an estimate from the bits alone, null where the lists cannot answer; there is no distance.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, probes int DEFAULT NULL)
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
        RETURN QUERY SELECT {each s.@}, NULL::float8, NULL::float8 FROM {source} s WHERE s.{embedding} IS NOT NULL;
    ELSE
        RETURN QUERY SELECT {each <e.key>}, NULL::float8, {bit_score}(e.bits)
                     FROM (SELECT unnest(near.keys) AS key, unnest(near.bits) AS bits) e
                     CROSS JOIN LATERAL (SELECT FROM {source} s WHERE {s_is_e} OFFSET 0) s;
    END IF;
END
$body$;

-- foh: function explained, called by readers
-- The part of explain that reads our tables. share, condition: about so many rows pass a condition, and how that is answered.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, probes int, shortlist int, labels float8, recall float8, share float8, condition text)
RETURNS TABLE (step text, value text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
#variable_conflict use_variable
DECLARE
    dial float8 := {dial_factor}(labels);
    -- The model, and what was chosen by it.
    chosen record;
    target float8 := coalesce(recall, {recall}::float8);
    -- The query under the name that it has in a search.
    vector {vector}.vector := query;
    looks bit({geometry_bits})[];
    centers int[];
    s record;
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, probes, shortlist, labels, recall);
    SELECT {query_looks} INTO looks FROM {quantizer} g;
    SELECT * INTO s FROM {state}();
    IF s.fallback IS DISTINCT FROM 'changed' THEN
        -- Take the lock on the source that a search takes, so that no ALTER of it commits before this transaction ends.
        -- PostgreSQL looks for changes by others when it takes a new lock, and a later search of the same transaction may
        -- find all other locks taken.
        PERFORM foh._open({tables_text});
    END IF;
    SELECT m.*, {probes_for_share} AS probed, {shortlist_chosen} AS ranked INTO chosen
    FROM (SELECT m.*, dial * m.weight_votes AS lean, {reach_chosen} AS reach FROM foh.model m WHERE m.index = {id} AND m.version = s.version) m;
    centers := ARRAY(SELECT c.center FROM (SELECT looks[1] AS geometry, looks[2] AS above, looks[3] AS below OFFSET 0) l CROSS JOIN LATERAL {nearest_centers}(l.geometry, l.above, l.below, chosen.probed) c);
    IF target IS NULL AND share IS NULL AND chosen.lean = 0 AND probes IS NULL AND shortlist IS NULL AND chosen.probed = chosen.nearest_probes THEN
        target := {recall_default};
    END IF;
    RETURN QUERY
        SELECT v.step, v.value FROM (VALUES
            ('version', s.version::text),
            ('fallback', coalesce(foh._fallback(coalesce(s.fallback, CASE WHEN recall >= 1 THEN 'asked' END)), 'none')),
            ('centers', (SELECT count(*)::text FROM {center})),
            ('centers probed', cardinality(centers)::text),
            ('list entries read', (SELECT coalesce(sum(cardinality(l.ids)), 0)::text FROM {list} l WHERE l.center = ANY (centers) AND s.truncated = 0)),
            ('stream rows read', (SELECT count(*)::text FROM {stream} t WHERE t.op = 'u' AND t.seq > s.truncated
                                  AND (t.center = ANY (centers) OR t.center < chosen.first_center))),
            ('stream rows', (SELECT count(*)::text FROM {stream})),
            ('condition', condition),
            ('labels', CASE WHEN chosen.lean = 0 THEN 'not asked: nearest vectors only'
                       ELSE format('rows of another kind count as %s times as far; the code counts %s in telling the kind',
                                   1 + chosen.lean, chosen.weight_code) END),
            ('recall', CASE WHEN share IS NULL THEN foh._recall_text(target, chosen.reach_recall, chosen.reach_probes, chosen.reach_shortlist, chosen.probed, chosen.ranked)
                            WHEN chosen.lean = 0 THEN format('%s of the ten nearest that pass wanted', coalesce(target, 0.9)) END),
            ('shortlist', CASE chosen.ranked WHEN 0 THEN 'none: by bits alone' ELSE greatest(k, chosen.ranked)::text END)
        ) AS v (step, value) WHERE v.value IS NOT NULL;
END
$body$;

-- foh: function explain, called by readers
-- How a search would be answered: the centers probed, the entries read, and the fallback taken, if any. It runs with the rights of the
-- caller and has no SET search_path: PostgreSQL may run parts of a filter when it plans it.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                     labels float8 DEFAULT NULL, recall float8 DEFAULT NULL, match jsonb DEFAULT NULL, filter text DEFAULT NULL, params jsonb DEFAULT NULL)
RETURNS TABLE (step text, value text)
LANGUAGE plpgsql STABLE
AS $body$
#variable_conflict use_variable
DECLARE
    matched pg_catalog.record;
    -- What rows must fulfil, in SQL over the row s.
    condition pg_catalog.text;
    share pg_catalog.float8 := CASE WHEN match IS NOT NULL THEN 0.25::pg_catalog.float8 END;
    most bigint;
    -- How that is answered.
    answered pg_catalog.text := CASE WHEN filter IS NULL THEN 'the lists are asked'
                                     WHEN match IS NULL THEN 'filter is tested on the rows that the lists lead to'
                                     ELSE 'the lists are asked for match, and filter is tested on the rows' END;
BEGIN
    {refuse_arguments}
    IF match IS NOT NULL THEN
        IF NOT foh._intact_in_plan({recorded_columns})
           AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.~~) 'read %'::pg_catalog.text THEN
            PERFORM foh._refuse_if_changed({name}, true);
        END IF;
        matched := foh._matched({name}, {included_text}, {label_conditions_text}, match);
        condition := matched.condition;
        labels := CASE WHEN matched.tests OPERATOR(pg_catalog.?|) ARRAY['labels_any', 'labels_all'] THEN 0 ELSE labels END;
    END IF;
    IF filter IS NOT NULL THEN
        condition := pg_catalog.concat_ws(' AND ', condition, '(' OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) E'\n)');
    END IF;
    IF condition IS NULL THEN
        answered := NULL;
    ELSIF {distributed} THEN
        answered := answered OPERATOR(pg_catalog.||) ', then the nodes';
    ELSIF pg_catalog.to_regclass({source_text}) IS NULL OR match IS NOT NULL AND {table_missing} THEN
        PERFORM foh._refuse_changed({name});
    ELSE
        SELECT w.share, w.most INTO share, most
        FROM foh._way(foh._planned('SELECT FROM ' OPERATOR(pg_catalog.||) {asked_rows}, params), foh._rows_of({item_text}::pg_catalog.regclass), k, {dimensions},
            CASE WHEN {dial_factor}(labels) OPERATOR(pg_catalog.>) 0::pg_catalog.float8 THEN {exact_rows} END, filter IS NOT NULL) w;
        answered := pg_catalog.format('by the statistics of PostgreSQL about %s %% of the rows pass: ', pg_catalog.round((100::pg_catalog.float8 OPERATOR(pg_catalog.*) share)::pg_catalog.numeric, 2))
            OPERATOR(pg_catalog.||) CASE WHEN most IS NULL THEN answered ELSE 'these are read by an index of the application, or a scan, and ranked exactly' END;
    END IF;
    RETURN QUERY SELECT e.step, e.value FROM {explained}(query, k, probes, shortlist, labels, recall, share, answered) e;
END
$body$;

-- foh: function describe, called by readers and updaters
-- What a client must know of the index to call its functions; open to its readers, who may not read foh.index.
CREATE OR REPLACE FUNCTION {self}()
RETURNS TABLE (source text, key text[], key_types text[], embedding text, labels text, dimensions int, bits int, distance text,
               version bigint, vector_schema text, vector_type oid, include text[])
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
-- A client compares the names of types.
SET quote_all_identifiers = off
AS $body$
    SELECT i.source_name, i.key::text[], i.key_types::text[], i.embedding::text, i.labels::text, i.dimensions, i.bits, i.distance,
           i.version, n.nspname::text, t.oid,
           ARRAY(SELECT c.value ->> 'name' FROM jsonb_array_elements(i.included) WITH ORDINALITY AS c (value, at) ORDER BY c.at)
    FROM foh.index i, pg_extension e
    JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'vector'
    WHERE i.id = {id} AND e.extname = 'vector'
$body$;
