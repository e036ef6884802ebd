-- How a search would be answered: the centers probed, the entries read, and the fallback taken, if any.
CREATE OR REPLACE FUNCTION {explain}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL)
RETURNS TABLE (step text, value text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
#variable_conflict use_variable
DECLARE
    reach int := coalesce(probes, {probes});
    ranked int := coalesce(shortlist, {shortlist});
    p record;
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, reach, ranked);
    SELECT * INTO p FROM {probe}(query, NULL, reach);
    RETURN QUERY
        SELECT s.step, s.value FROM (VALUES
            ('version', p.version::text),
            ('code', p.code::text),
            ('fallback', coalesce(p.fallback, 'none')),
            ('centers', (SELECT count(*)::text FROM {center})),
            ('centers probed', cardinality(p.centers)::text),
            ('list entries read', (SELECT coalesce(sum(cardinality(l.ids)), 0)::text FROM {list} l WHERE l.center = ANY (p.centers) AND p.truncated = 0)),
            ('stream rows read', (SELECT count(*)::text FROM {stream} t
                                  WHERE t.op = 'u' AND t.seq > p.truncated AND (t.version < p.version OR t.center = ANY (p.centers)))),
            ('stream rows', (SELECT count(*)::text FROM {stream})),
            ('shortlist', CASE ranked WHEN 0 THEN 'none: by Hamming distance alone' ELSE greatest(k, ranked)::text END)
        ) AS s (step, value);
END
$body$;
