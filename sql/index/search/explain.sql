-- How a search would be answered: the centers probed, the entries read, and the fallback taken, if any.
CREATE OR REPLACE FUNCTION {explain}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                     labels float8 DEFAULT NULL)
RETURNS TABLE (step text, value text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
#variable_conflict use_variable
DECLARE
    dial float8 := {dial_factor}(labels);
    reach int;
    ranked int;
    -- The query under the name that it has in a search.
    vector {vector}.vector := query;
    geometry bit({geometry_bits});
    centers int[];
    m foh.model;
    s record;
BEGIN
    PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, probes, shortlist, labels);
    SELECT {query_geometry} INTO geometry FROM {quantizer} g;
    SELECT * INTO s FROM {state}();
    IF s.fallback IS DISTINCT FROM 'changed' THEN
        -- Take the lock on the source that a search takes, so that no ALTER of it commits before this transaction ends.
        -- PostgreSQL looks for changes by others when it takes a new lock, and a later search of the same transaction may
        -- find all other locks taken.
        PERFORM foh._open({tables_text});
    END IF;
    SELECT * INTO m FROM foh.model o WHERE o.index = {id} AND o.version = s.version;
    reach := coalesce(probes, {probes_option}, m.probes, {probes_default});
    ranked := coalesce(shortlist, {shortlist_option}, m.shortlist, CASE WHEN dial * {weights} = 0 THEN {shortlist_nearest} ELSE {shortlist_default} END);
    centers := ARRAY(SELECT c.center FROM {nearest_centers}(geometry, reach) c);
    RETURN QUERY
        SELECT v.step, v.value FROM (VALUES
            ('version', s.version::text),
            ('fallback', coalesce(foh._fallback(s.fallback), 'none')),
            ('centers', (SELECT count(*)::text FROM {center})),
            ('centers probed', cardinality(centers)::text),
            ('list entries read', (SELECT coalesce(sum(cardinality(l.ids)), 0)::text FROM {list} l WHERE l.center = ANY (centers) AND s.truncated = 0)),
            ('stream rows read', (SELECT count(*)::text FROM {stream} t WHERE t.op = 'u' AND t.seq > s.truncated
                                  AND (t.center = ANY (centers) OR t.center < m.first_center))),
            ('stream rows', (SELECT count(*)::text FROM {stream})),
            ('label weights', CASE WHEN dial = 0 THEN 'none: nearest vectors only'
                              ELSE format('code %s, votes %s', dial * coalesce({weight_code}, m.weight_code),
                                          dial * coalesce({weight_votes}, m.weight_votes)) END),
            ('shortlist', CASE ranked WHEN 0 THEN 'none: by bits alone' ELSE greatest(k, ranked)::text END)
        ) AS v (step, value);
END
$body$;
