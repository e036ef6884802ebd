-- Compares source, stream and lists in one snapshot and queues the keys in which they differ. Keys only, without bits
-- or tombstones: whoever reads such an entry looks at the row as it is then, so that a writer who commits meanwhile,
-- with a lower sequence number, is not undone.
CREATE OR REPLACE FUNCTION {repair}() RETURNS TABLE (missing bigint, gone bigint, changed bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: rows that are not seen would be taken for gone.
SET row_security = off
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $body$
#variable_conflict use_column
BEGIN
PERFORM foh._open({tables_text});
RETURN QUERY
WITH marker AS (
    SELECT coalesce(max(t.seq), 0) AS truncated FROM {stream} t WHERE t.op = 't'
), newest AS MATERIALIZED (
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.geometry
    FROM {stream_and_inbox} t, marker m WHERE t.key IS NOT NULL AND t.op <> 'l' AND t.seq > m.truncated ORDER BY t.key, t.seq DESC
), listed AS (
    -- Lists without a center are those of a build that is not done.
    SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks FROM {list} l, marker m
    WHERE m.truncated = 0 AND EXISTS (SELECT FROM {center} c WHERE c.center = l.center)
), present AS MATERIALIZED (
    SELECT v.key, p.geometry, p.marks
    FROM (SELECT v.key, v.labels, CASE WHEN {vector}.vector_norm(v.x) <= {longest} THEN v.x END AS x
          FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM {source_rows_or_table} s WHERE s.{embedding} IS NOT NULL OFFSET 0) v
          WHERE v.x IS NOT NULL OFFSET 0) v
    -- A far row has no bits.
    LEFT JOIN LATERAL {place}(v.x, v.labels) p ON v.x IS NOT NULL
), indexed AS MATERIALIZED (
    -- The bits of an entry older than the centers are those of an earlier quantizer: an update reads its row in any case.
    SELECT n.key, CASE WHEN n.version >= m.placed THEN n.geometry END AS geometry, NULL::bit({mark_bits}) AS marks, n.geometry IS NOT NULL AS told
    FROM newest n, foh.model m
    WHERE n.op = 'u' AND m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})
    UNION ALL
    SELECT l.key, l.geometry, l.marks, true FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
    UNION ALL
    SELECT f.key, NULL, NULL, true
    FROM foh.model m CROSS JOIN unnest(m.far::{key_type}[]) AS f (key) LEFT JOIN present p ON p.key = f.key
    WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id}) AND (SELECT k.truncated = 0 FROM marker k)
      AND p.geometry IS NULL AND NOT EXISTS (SELECT FROM newest n WHERE n.key = f.key)
), difference AS MATERIALIZED (
    SELECT p.key, 'missing' AS kind FROM present p WHERE NOT EXISTS (SELECT FROM indexed i WHERE i.key = p.key)
    UNION
    SELECT i.key, 'gone' FROM indexed i WHERE i.told AND NOT EXISTS (SELECT FROM present p WHERE p.key = i.key)
    UNION
    -- The bits of the embedding and the labels tell that a row has changed. A learned code may differ without that: codes of lists
    -- grow stale within what max_stale allows, updates encode them again, and foh.check compares them on the whole.
    SELECT i.key, 'changed' FROM indexed i JOIN present p ON p.key = i.key
    WHERE i.geometry OPERATOR({vector}.<~>) p.geometry > {checked_bound}
       OR (i.marks & {signature_mask}) <> (p.marks & {signature_mask}) OR (p.geometry IS NULL AND i.geometry IS NOT NULL)
), queued AS (
    INSERT INTO {stream} (key, op, version, center) SELECT d.key, 'u', 0, 0 FROM difference d
)
SELECT count(*) FILTER (WHERE d.kind = 'missing'), count(*) FILTER (WHERE d.kind = 'gone'), count(*) FILTER (WHERE d.kind = 'changed')
FROM difference d;
END
$body$;
