-- What the searches of all indexes share.

-- What the ranking of a search is made of, where the model or an option of the index does not say otherwise. PostgreSQL and Python
-- (foh_pg/tables/ranking.py) read the same numbers here.
-- looked, looked_times: how many of the nearest rows by bits the labels choose among, at least and for each row wanted. looked_alone: how
-- many are looked at again, at least, where labels do not count; else two for each row wanted. voters: how many of
-- them vote. probes_default, shortlist_default: lists and rows that a search reads before held-out rows were asked. weight_code_default,
-- weight_votes_default: how much the learned code counts beside the bits in the choice of voters, and by how many times its distance a row
-- of another kind is put back. recall_default: the share of the nearest rows that is wanted where labels do not count.
-- probe_cost: to read a list costs as much as to read so many rows. cost_labels, cost_nearest: how much a search may cost, in rows read.
CREATE OR REPLACE FUNCTION foh._ranking() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '{
        "looked": 100, "looked_times": 3, "looked_alone": 60, "voters": 9,
        "probes_default": 32, "shortlist_default": 30,
        "weight_code_default": 0.2, "weight_votes_default": 1.0,
        "recall_default": 0.95, "probe_cost": 2, "cost_labels": 78, "cost_nearest": 170
    }'::jsonb
$function$;

-- foh: function _refuse_search, called by readers
-- Raises an error where an argument of a search makes no sense; the error names the value and the cure.
CREATE OR REPLACE FUNCTION foh._refuse_search(name text, expected int, dimensions int, k int, probes int, shortlist int, labels float8,
                                              recall float8) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    problem text := CASE
        WHEN dimensions <> expected THEN format('index %L has %s dimensions, the query has %s', name, expected, dimensions)
        WHEN k IS NULL OR k < 1 THEN format('k is %s, it must be 1 or more', coalesce(k::text, 'NULL'))
        WHEN probes < 1 THEN format('probes is %s, it must be 1 or more', probes)
        WHEN shortlist < 0 THEN format('shortlist is %s, it must be 0 (by bits alone) or more', shortlist)
        WHEN NOT labels BETWEEN 0 AND 1 THEN format('labels is %s, it must be between 0 (nearest vectors only) and 1 (likeliest to share a label)', labels)
        WHEN NOT (recall > 0 AND recall <= 1) THEN format('recall is %s, it must be above 0 and at most 1 (the exact answer)', recall)
        WHEN dimensions IS NULL THEN 'the query is NULL: pass a vector'
    END;
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'foh: %', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$function$;

-- What the codes of a fallback mean, for people.
CREATE OR REPLACE FUNCTION foh._fallback(code text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE code
        WHEN 'building' THEN 'the index is being built'
        WHEN 'changed' THEN 'the source has changed'
        WHEN 'resync' THEN 'the source must be read again'
        WHEN 'unplaced' THEN 'many rows wait that no list leads to'
        WHEN 'small' THEN 'the index is small'
        WHEN 'asked' THEN 'recall 1 asks for the exact answer'
        WHEN NULL THEN NULL
        ELSE code END
$function$;

-- What explain says of the recall of a search: what was asked for, and what held-out rows reached with so many probes and rows read.
CREATE OR REPLACE FUNCTION foh._recall_text(target float8, recalls float8[], probes int[], shortlists int[], probed int, ranked int) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat_ws('; ', format('%s wanted', target),
                     CASE WHEN recalls IS NULL THEN 'not measured yet: the next build or update measures it'
                          WHEN reached IS NULL THEN 'less than was ever measured'
                          ELSE format('%s of the ten nearest expected without labels', round(reached::numeric, 3)) END,
                     CASE WHEN reached < target THEN 'more would cost too much: say recall, probes or shortlist to have it nevertheless' END)
    FROM (SELECT max(r.recall) AS reached FROM unnest(recalls, probes, shortlists) AS r (recall, probes, shortlist)
          WHERE r.probes <= probed AND r.shortlist <= ranked) r
$function$;

-- foh: function search, called by readers
-- The search of any index, by name, with the key as text.
CREATE OR REPLACE FUNCTION foh.search(index text, query @vector@.vector, k int DEFAULT 10, probes int DEFAULT NULL,
                                      shortlist int DEFAULT NULL, filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL,
                                      recall float8 DEFAULT NULL, max_distance float8 DEFAULT NULL)
RETURNS TABLE (key text, distance float8, score float8)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 COST 10000
AS $function$
BEGIN
    -- Looked up by name, without argument types: pgvector may have moved to another schema since this function was made.
    IF index IS NULL OR NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
                                    WHERE n.nspname OPERATOR(pg_catalog.=) 'foh' AND p.proname OPERATOR(pg_catalog.=) (index OPERATOR(pg_catalog.||) '_search')::pg_catalog.name) THEN
        RAISE EXCEPTION 'foh: there is no index %', pg_catalog.quote_nullable(index) USING ERRCODE = 'undefined_object',
            HINT = 'SELECT name FROM foh.index_stat lists those there are.';
    END IF;
    RETURN QUERY EXECUTE pg_catalog.format('SELECT (r).%I::pg_catalog.text, (r).%I, (r).%I FROM foh.%I($1, $2, $3, $4, $5, $6, $7, $8, $9) r', VARIADIC
            (SELECT pg_catalog.array_agg(a.attname ORDER BY a.attnum) OPERATOR(pg_catalog.||) (index OPERATOR(pg_catalog.||) '_search')::pg_catalog.name
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
             WHERE n.nspname OPERATOR(pg_catalog.=) 'foh' AND c.relname OPERATOR(pg_catalog.=) (index OPERATOR(pg_catalog.||) '_result')::pg_catalog.name))
        USING query, k, probes, shortlist, filter, params, labels, recall, max_distance;
END
$function$;
