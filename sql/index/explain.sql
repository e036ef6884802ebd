-- How a search would be answered: the centers probed, the entries read, and the fallback taken, if any.
CREATE OR REPLACE FUNCTION {explain}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL)
RETURNS TABLE (step text, value text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
AS $body$
#variable_conflict use_variable
DECLARE
    reach int := coalesce(probes, {probes});
    ranked int := coalesce(shortlist, {shortlist});
    code bit({bits});
    centers int[];
    s record;
BEGIN
    PERFORM foh._guard({name});
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, reach, ranked);
    code := {encode}(query);
    SELECT * INTO s FROM {state}();
    IF s.fallback IS DISTINCT FROM 'the source has changed' THEN
        -- Like a search, let no ALTER of the source in before the transaction ends: one that holds all other locks of a search
        -- hears of none.
        PERFORM FROM {source} s WHERE false;
    END IF;
    centers := ARRAY(SELECT c.center FROM {nearest}(code, {explain_to_center}, s.scale, reach) c);
    RETURN QUERY
        SELECT v.step, v.value FROM (VALUES
            ('version', s.version::text),
            ('code', code::text),
            ('fallback', coalesce(s.fallback, 'none')),
            ('centers', (SELECT count(*)::text FROM {center})),
            ('centers probed', cardinality(centers)::text),
            ('list entries read', (SELECT coalesce(sum(cardinality(l.ids)), 0)::text FROM {list} l WHERE l.center = ANY (centers) AND s.truncated = 0)),
            ('stream rows read', (SELECT count(*)::text FROM {stream} t WHERE t.op = 'u' AND t.seq > s.truncated
                                  AND (t.version = 0 OR t.center = ANY (centers || 0) OR NOT EXISTS (SELECT FROM {center} c WHERE c.center = t.center)))),
            ('stream rows', (SELECT count(*)::text FROM {stream})),
            ('shortlist', CASE ranked WHEN 0 THEN 'none: by Hamming distance alone' ELSE greatest(k, ranked)::text END)
        ) AS v (step, value);
END
$body$;
