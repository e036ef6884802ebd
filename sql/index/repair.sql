-- Compares source, stream and lists in one snapshot and queues the keys in which they differ. Keys only, without codes
-- or tombstones: whoever reads such an entry looks at the row as it is then, so that a writer who commits meanwhile,
-- with a lower sequence number, is not undone.
CREATE OR REPLACE FUNCTION {repair}(caller text DEFAULT foh._identity()) RETURNS TABLE (missing bigint, gone bigint, changed bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
SET jit = off
AS $body$
#variable_conflict use_column
BEGIN
PERFORM foh._guard({name}, caller);
RETURN QUERY
WITH marker AS (
    SELECT coalesce(max(t.seq), 0) AS truncated FROM {stream} t WHERE t.op = 't'
), newest AS (
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.code
    FROM {stream} t, marker m WHERE t.key IS NOT NULL AND t.seq > m.truncated ORDER BY t.key, t.seq DESC
), listed AS (
    -- Lists without a center are those of a build that is not done.
    SELECT unnest(l.ids) AS key, unnest(l.codes) AS code FROM {list} l, marker m
    WHERE m.truncated = 0 AND EXISTS (SELECT FROM {center} c WHERE c.center = l.center)
), indexed AS MATERIALIZED (
    SELECT n.key, n.code, n.version = (SELECT i.version FROM foh.index i WHERE i.id = {id}) AS exact FROM newest n WHERE n.op = 'u'
    UNION ALL
    SELECT l.key, l.code, false FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
), present AS MATERIALIZED (
    SELECT p.key, p.code FROM {place}(ARRAY(SELECT s.{key} FROM {source} s)) p WHERE p.code IS NOT NULL
), difference AS MATERIALIZED (
    SELECT p.key, 'missing' AS kind FROM present p WHERE NOT EXISTS (SELECT FROM indexed i WHERE i.key = p.key)
    UNION
    SELECT i.key, 'gone' FROM indexed i WHERE i.code IS NOT NULL AND NOT EXISTS (SELECT FROM present p WHERE p.key = i.key)
    UNION
    -- A code in a list may be stale within bounds; one that the present version made may not.
    SELECT i.key, 'changed' FROM indexed i JOIN present p ON p.key = i.key
    WHERE i.code OPERATOR({vector}.<~>) p.code > CASE WHEN i.exact THEN 1 ELSE 2 + 4 * {max_stale} * {bits} END
), queued AS (
    INSERT INTO {stream} (key, op, version, center) SELECT d.key, 'u', 0, 0 FROM difference d
)
SELECT count(*) FILTER (WHERE d.kind = 'missing'), count(*) FILTER (WHERE d.kind = 'gone'), count(*) FILTER (WHERE d.kind = 'changed')
FROM difference d;
END
$body$;
