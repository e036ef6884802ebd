-- The first step of a search: the code of the query, the centers to read, and whether the lists can answer at all.
-- Either the vector or the code is given.
CREATE OR REPLACE FUNCTION {probe}(vector {vector}.vector, given bit, probes int)
RETURNS TABLE (version bigint, code bit, centers int[], truncated bigint, scale float8, fallback text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $body$
#variable_conflict use_variable
DECLARE
    source oid;
    status text;
    trained boolean;
    resync boolean;
    unit {center_type};
BEGIN
    SELECT i.version, i.source, i.status, m.trained, m.scale INTO version, source, status, trained, scale
    FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version WHERE i.id = {id};
    SELECT coalesce(max(t.seq) FILTER (WHERE t.op = 't'), 0), coalesce(bool_or(t.op = 'r'), false) INTO truncated, resync
    FROM {stream} t WHERE t.op IN ('t', 'r');
    fallback := CASE
        WHEN status = 'building' THEN 'the index is being built'
        WHEN NOT {intact}(source) THEN 'the source has changed'
        WHEN resync THEN 'the source must be read again'
        -- A handful of rows without a code is encoded on the way; more of them are cheaper to scan.
        WHEN (SELECT count(*) FROM (SELECT FROM {stream} t WHERE t.version = 0 AND t.op = 'u' LIMIT 201) d) > 200 THEN
            'rows wait without a code'
        WHEN NOT trained AND (SELECT coalesce(sum(c.length), 0) FROM {center} c)
             + (SELECT count(*) FROM (SELECT FROM {stream} t LIMIT {exact_rows} + 1) n) <= {exact_rows} THEN
            'the index is small and untrained'
    END;
    IF given IS NOT NULL THEN
        code := given;
        centers := ARRAY(SELECT c.center FROM {center} c ORDER BY c.code OPERATOR({vector}.<~>) code, c.center LIMIT probes);
    ELSE
        code := coalesce((SELECT bit_or(p.mask) FILTER (WHERE -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) FROM {projection} p),
                         {zeros});
        unit := {query_to_center};
        centers := ARRAY(SELECT c.center FROM {center} c
                         ORDER BY (c.code OPERATOR({vector}.<~>) code) / {bits} + {blend} * {query_center_distance} LIMIT probes);
    END IF;
    -- Rows that were encoded before there were centers.
    IF cardinality(centers) = 0 THEN
        centers := ARRAY[0];
    END IF;
    RETURN NEXT;
END
$body$;
