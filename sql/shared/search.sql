-- What the searches of all indexes share.

-- What the ranking of a search is made of, where the model or an option of the index does not say otherwise. PostgreSQL and Python
-- (foh_pg/model/ranking.py) read the same numbers here.
-- looked, looked_times: how many of the nearest rows by bits are looked at again, at least and for each row wanted. voters: how many of
-- them vote. probes_default, shortlist_default: lists and rows that a search reads before held-out rows were asked. weight_code_default,
-- weight_votes_default: how much the learned code counts beside the bits in the choice of voters, and by how many times its distance a row
-- of another kind is put back. recall_default: the share of the nearest rows that is wanted where labels do not count.
-- label_voters: how many of the nearest rows with labels vote what a vector is called; label_voters_times: so many times as many rows are
-- looked at where too few have labels. The vote of the nth counts 1 / (label_rank + n). label_doubt: what keeps a label that all voters have
-- from being certain.
CREATE OR REPLACE FUNCTION foh._ranking() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '{
        "looked": 60, "looked_times": 2, "voters": 9,
        "probes_default": 32, "shortlist_default": 30,
        "weight_code_default": 0.2, "weight_votes_default": 1.0,
        "recall_default": 0.95,
        "label_voters": 20, "label_voters_times": 5, "label_rank": 4, "label_doubt": 0.05
    }'::jsonb
$function$;

-- foh: function _refuse_search, called by readers
-- Raises an error where an argument of a search makes no sense; the error names the value and the cure. Where the query has other dimensions
-- than the index because the table was given others, the cure is that of the table.
CREATE OR REPLACE FUNCTION foh._refuse_search(name text, expected int, dimensions int, k int, probes int, shortlist int, labels float8,
                                              recall float8) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
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
    IF dimensions <> expected THEN
        PERFORM foh._refuse_if_changed(name, false);
    END IF;
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
        WHEN 'unplaced' THEN 'too many rows are in no list yet: the next update places them'
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
    SELECT concat_ws('; ', target || ' wanted',
                     CASE WHEN recalls IS NULL THEN 'not measured yet: the next build or update measures it'
                          WHEN reached IS NULL THEN 'less than was ever measured'
                          ELSE format('%s of the ten nearest expected without labels', round(reached::numeric, 3)) END,
                     CASE WHEN reached < target THEN 'more would cost too much: say recall, probes or shortlist to have it nevertheless' END)
    FROM (SELECT max(r.recall) AS reached FROM unnest(recalls, probes, shortlists) AS r (recall, probes, shortlist)
          WHERE r.probes <= probed AND r.shortlist <= ranked) r
$function$;

-- foh: function _planned, called by readers
-- How PostgreSQL would run a statement. VOLATILE, since it runs EXPLAIN in no other kind of function; nothing is written. No SET search_path: the
-- statement has a filter in it, which must see the functions that its author sees.
CREATE OR REPLACE FUNCTION foh._planned(statement text, params jsonb) RETURNS json
LANGUAGE plpgsql VOLATILE PARALLEL SAFE
-- As in the functions that would read the rows.
SET enable_seqscan = on
SET enable_bitmapscan = on
SET enable_hashjoin = on
SET enable_mergejoin = on
AS $function$
DECLARE
    plan pg_catalog.json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' OPERATOR(pg_catalog.||) statement INTO plan USING params;
    RETURN plan;
END
$function$;

-- foh: function _rows_of, called by readers
-- About how many rows a table of items has, by its size, which is always up to date, and by how many rows a page had when the table was last
-- vacuumed. Before that it is taken to have 150, as with a key of one number. A plain SQL function without SET, so that it is inlined. It is parsed under the
-- search_path of the caller, so it names every operator with its schema.
CREATE OR REPLACE FUNCTION foh._rows_of(item oid) RETURNS float8
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT pg_catalog.pg_relation_size(c.oid)::pg_catalog.float8 OPERATOR(pg_catalog./) 8192::pg_catalog.float8
           OPERATOR(pg_catalog.*) CASE WHEN c.reltuples OPERATOR(pg_catalog.>) 0::pg_catalog.float4 AND c.relpages OPERATOR(pg_catalog.>) 0
                                       THEN c.reltuples OPERATOR(pg_catalog./) c.relpages::pg_catalog.float8 ELSE 150::pg_catalog.float8 END
    FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) $1
$function$;

-- foh: function _way, called by readers
-- How a search with a condition is answered, by the plan that PostgreSQL has for the condition alone. share: about so many of all rows pass, and
-- the fewer, the more lists must be read. most: not null where it is cheaper to read all rows that pass, by the indexes of the application,
-- than to read lists and look up what is in them: so many rows, and no more, since PostgreSQL may be wrong. worth: so many lists cost as much as
-- to read all rows that pass.
-- Costs are in microseconds, as measured on one machine: it is their proportions that count. A row that is read costs the more the more
-- dimensions it has, a scan as PostgreSQL says, a row looked up in vain 4, a list 4 and .12 for each of its entries.
-- filtered: the lists cannot tell which rows pass. limited: do so only where at most so many rows pass. indexed: how many rows the index has.
CREATE OR REPLACE FUNCTION foh._way(plan json, indexed float8, k int, dimensions int, limited bigint, filtered boolean, OUT share float8, OUT most bigint, OUT worth int)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    total constant float8 := greatest(indexed, 1);
    passing constant float8 := greatest((plan #>> '{0,Plan,Plan Rows}')::float8, 1);
    scanned constant float8 := CASE WHEN plan::text LIKE '%"Seq Scan"%' THEN 5 * (plan #>> '{0,Plan,Total Cost}')::float8 ELSE 0 END;
    by_table constant float8 := 250 + scanned + passing * (1.5 + 0.004 * dimensions);
    a_list constant float8 := 4 + 0.12 * cbrt(total);
    by_lists float8;
BEGIN
    share := least(passing / total, 1);
    by_lists := 600 + 4::float8 * greatest(k, 30) / CASE WHEN filtered THEN share ELSE 1 END + 40 * power(share, -0.4) * a_list;
    worth := least(greatest(by_table - 600, 0) / a_list, 10000000);
    most := CASE WHEN by_table < by_lists AND (limited IS NULL OR passing <= limited) THEN 1.5 * passing + 100 END;
END
$function$;
