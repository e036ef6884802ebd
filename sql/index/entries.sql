-- The second step: the n entries nearest by Hamming distance among the lists and the stream rows of these centers.
-- The newest stream entry of a key wins over all others; entries of an older version are read wherever they are.
CREATE OR REPLACE FUNCTION {entries}(code bit, version bigint, centers int[], truncated bigint, n int)
RETURNS TABLE (key {key_type}, distance int)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
-- The shape of the plan is pinned: it may have been made when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $body$
#variable_conflict use_variable
BEGIN
    RETURN QUERY
    SELECT e.key, e.distance::int
    FROM (
        SELECT {distinct_entry} u.key, u.code OPERATOR({vector}.<~>) code AS distance, 0::bigint AS seq
        FROM (SELECT unnest(l.ids) AS key, unnest(l.codes) AS code FROM {list} l
              WHERE l.center = ANY (centers) AND truncated = 0) u
        UNION ALL
        SELECT t.key, t.code OPERATOR({vector}.<~>) code, t.seq FROM {stream} t
        WHERE t.version = version AND t.center = ANY (centers) AND t.op = 'u' AND t.seq > truncated
        UNION ALL
        SELECT t.key, coalesce(t.code, (SELECT p.code FROM {place}(ARRAY[t.key]) p)) OPERATOR({vector}.<~>) code, t.seq FROM {stream} t
        WHERE t.version < version AND t.op = 'u' AND t.seq > truncated
        ORDER BY 2 LIMIT 2 * n::bigint + 50) e
    WHERE e.distance IS NOT NULL AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND o.seq > e.seq)
    LIMIT n;
END
$body$;
