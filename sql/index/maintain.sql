-- What the updater and the evaluation ask of an index.

-- foh: function rows, called by updaters
-- Rows of the source for an updater, which may not read the source itself: the rows of some keys; or, in the order of the key, a
-- page after a key, a sample, or a part of the rows that never train. x is null where the embedding cannot be used; only a
-- page has such rows. The first 32 bits of a digest of the key decide what is held out and the second 32 bits what is
-- sampled, so that one does not depend on the other.
CREATE OR REPLACE FUNCTION {self}(keys {key_type}[] DEFAULT NULL, after {key_type} DEFAULT NULL, wanted int DEFAULT NULL,
                                  sampled bigint DEFAULT 4294967296, held_out bigint DEFAULT 4294967296)
RETURNS TABLE (key {key_type}, x {vector}.vector, labels text[]{included , included_# ~})
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: an updater that did not see them would drop them from the index.
SET row_security = off
SET plan_cache_mode = force_custom_plan
SET work_mem = '64MB'
AS $body$
#variable_conflict use_variable
BEGIN
    PERFORM foh._open({tables_text});
    IF keys IS NOT NULL THEN
        RETURN QUERY SELECT v.* FROM (SELECT {row s.@} AS key, {to_vector} AS x, {labels_of} AS labels{included , s.@::~ AS included_#} FROM {source_of_matching} OFFSET 0) v WHERE v.x IS NOT NULL;
    ELSIF wanted IS NOT NULL AND after IS NULL THEN
        RETURN QUERY SELECT {row s.@}, {to_vector}, {labels_of}{included , s.@::~ AS included_#} FROM {source} s
                     WHERE s.{embedding} IS NOT NULL ORDER BY {each s.@} LIMIT wanted;
    ELSIF wanted IS NOT NULL THEN
        RETURN QUERY SELECT {row s.@}, {to_vector}, {labels_of}{included , s.@::~ AS included_#} FROM {source} s
                     WHERE s.{embedding} IS NOT NULL AND ({each s.@}) > ({each <after>^}) ORDER BY {each s.@} LIMIT wanted;
    ELSE
        RETURN QUERY SELECT v.key, v.x, v.labels{included , v.included_#}
                     FROM (SELECT {row s.@} AS key, {to_vector} AS x, {labels_of} AS labels{included , s.@::~ AS included_#}
                           FROM {source} s CROSS JOIN LATERAL (SELECT {key_digest} AS digest OFFSET 0) d
                           WHERE ('x' || left(d.digest, 8))::bit(32)::bigint < held_out
                             AND ('x' || substr(d.digest, 9, 8))::bit(32)::bigint < sampled OFFSET 0) v
                     WHERE v.x IS NOT NULL ORDER BY v.key;
    END IF;
END
$body$;

-- foh: function unchanged, called by updaters
-- The number of rows of the source that have an embedding, or 0 where counted is false; null where the source no longer looks
-- as the index recorded it.
CREATE OR REPLACE FUNCTION {self}(counted boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET row_security = off
AS $body$
BEGIN
    IF {intact}((SELECT i.source FROM foh.index i WHERE i.id = {id})) IS NOT TRUE THEN
        RETURN NULL;
    ELSIF counted THEN
        PERFORM foh._open({tables_text});
        RETURN (SELECT count(*) FROM {source} s WHERE s.{embedding} IS NOT NULL);
    END IF;
    RETURN 0;
END
$body$;

-- foh: function follow, called by updaters
-- Queues the keys that partitions took with them or brought along; foh._follow calls it.
-- lost: a partition was emptied or is gone. attached: partitions with rows that no trigger may have seen.
CREATE OR REPLACE FUNCTION {self}(lost boolean, attached oid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: rows that are not seen would be taken for gone.
SET row_security = off
SET plan_cache_mode = force_custom_plan
SET work_mem = '64MB'
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    queued bigint := 0;
    n bigint;
BEGIN
    PERFORM foh._open({tables_text});
    IF lost THEN
        -- Searches leave out what is gone from the table, so they pass over these entries (op l); the next update looks for the
        -- rows. A tombstone would hide a row that another transaction is writing under one of these keys. Version -1 tells them
        -- from changes of labels: an update takes in many at once.
        INSERT INTO {stream} (key, op, version, fresh)
        SELECT e.key, 'l', -1, true FROM {item} e WHERE NOT EXISTS (SELECT FROM {source} s WHERE {s_is_e});
        GET DIAGNOSTICS queued = ROW_COUNT;
    END IF;
    IF attached <> '{}' THEN
        -- Rows that came by INSERT or UPDATE have an entry.
        INSERT INTO {stream} (key, op, version, center)
        SELECT {row s.@}, 'u', 0, 0 FROM {source} s
        WHERE s.tableoid = ANY (attached) AND s.{embedding} IS NOT NULL
          AND NOT EXISTS (SELECT FROM {stream} e WHERE e.key = {row s.@}{our_collate} AND e.op <> 'l');
        GET DIAGNOSTICS n = ROW_COUNT;
        queued := queued + n;
    END IF;
    RETURN queued;
END
$body$;

-- foh: function answer, called by updaters
-- What a search finds, with the rights of the table's owner, for an updater that measures the index. step says what to return.
-- answer: the rows of the answer. The other steps return what a search has on the way to it, or null where the lists cannot
-- answer. lists: all rows of the probed lists. bits: the nearest rows by geometry bits, among which the labels then choose.
-- shortlist: the rows whose exact distance is computed.
-- nearest: the answer of a search that no label takes part in. exact: what that answer would be at best. match: as in a search, for these three.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, step text DEFAULT 'answer', match jsonb DEFAULT NULL) RETURNS {key_type}[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
BEGIN
    PERFORM foh._open({tables_text});
    IF step = 'lists' THEN
        RETURN (SELECT n.keys FROM {near}(query, 10000000, NULL, 0, NULL, 0, 1, false) n);
    ELSIF step = 'bits' THEN
        RETURN (SELECT n.keys FROM {near}(query, k, NULL, NULL, NULL, {dial_factor}(NULL), 1, false) s,
                                   {near}(query, greatest({looked}, {looked_times} * greatest(k, s.ranked)), s.probes, 0, NULL, 0, 1, false) n);
    ELSIF step = 'shortlist' THEN
        RETURN (SELECT n.keys FROM {near}(query, k, NULL, NULL, NULL, {dial_factor}(NULL), 1, false) n);
    END IF;
    RETURN ARRAY(SELECT {row r.@}
                 FROM {search}(query, k, labels => CASE WHEN step IN ('nearest', 'exact') THEN 0 END, recall => CASE step WHEN 'exact' THEN 1 END, match => match) r);
END
$body$;

-- foh: function condition, called by updaters
-- How many rows a condition lets pass, and how such a search is answered, as explain says it to readers.
CREATE OR REPLACE FUNCTION {self}(query {vector}.vector, k int, match jsonb) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    RETURN (SELECT e.value FROM {explain}(query, k, match => match) e WHERE e.step = 'condition');
END
$body$;
