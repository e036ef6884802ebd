-- How a search would be answered: the centers probed, the entries read, and the fallback taken, if any.
CREATE OR REPLACE FUNCTION {explain}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                     labels float8 DEFAULT NULL, recall float8 DEFAULT NULL)
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
    target float8 := coalesce(recall, {recall_option}::float8);
    -- The query under the name that it has in a search.
    vector {vector}.vector := query;
    geometry bit({geometry_bits});
    centers int[];
    s record;
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, probes, shortlist, labels, recall);
    SELECT {query_geometry} INTO geometry FROM {quantizer} g;
    SELECT * INTO s FROM {state}();
    IF s.fallback IS DISTINCT FROM 'changed' THEN
        -- Take the lock on the source that a search takes, so that no ALTER of it commits before this transaction ends.
        -- PostgreSQL looks for changes by others when it takes a new lock, and a later search of the same transaction may
        -- find all other locks taken.
        PERFORM foh._open({tables_text});
    END IF;
    SELECT m.*, {probes_chosen} AS probed, {shortlist_chosen} AS ranked INTO chosen
    FROM (SELECT m.*, {lean_chosen} AS lean, {reach_chosen} AS reach FROM foh.model m WHERE m.index = {id} AND m.version = s.version) m;
    centers := ARRAY(SELECT c.center FROM {nearest_centers}(geometry, chosen.probed) c);
    IF target IS NULL AND chosen.lean = 0 AND probes IS NULL AND shortlist IS NULL AND chosen.probed = chosen.nearest_probes THEN
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
            ('labels', CASE WHEN chosen.lean = 0 THEN 'not asked: nearest vectors only'
                       ELSE format('rows of another kind count as %s times as far; the code counts %s in telling the kind',
                                   1 + chosen.lean, coalesce({weight_code}, chosen.weight_code)) END),
            ('recall', foh._recall_text(target, chosen.reach_recall, chosen.reach_probes, chosen.reach_shortlist, chosen.probed, chosen.ranked)),
            ('shortlist', CASE chosen.ranked WHEN 0 THEN 'none: by bits alone' ELSE greatest(k, chosen.ranked)::text END)
        ) AS v (step, value);
END
$body$;
