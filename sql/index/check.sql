-- Whether the promises of an index hold, and what finds and queues the difference where they do not.

-- foh: function check, called by updaters
-- Compares source, stream and lists in one snapshot. One row of output per violation. Every row is read and its geometry bits
-- are computed again, the learned codes only of some thousand rows. part, parts: only the keys of one part of several.
CREATE OR REPLACE FUNCTION {self}(part int DEFAULT 0, parts int DEFAULT 1)
RETURNS TABLE (promise int, problem text, key text, center int, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: rows that are not seen would be taken for gone.
SET row_security = off
SET plan_cache_mode = force_custom_plan
SET jit = off
-- Hash joins only: with the statistics of a table that was empty a moment ago, the planner would compare row by row.
SET enable_nestloop = off
AS $body$
#variable_conflict use_column
BEGIN
PERFORM foh._open({tables_text});
RETURN QUERY
WITH marker AS (
    -- exact: searches do not read the lists, before the first build and while the source has to be read again.
    SELECT coalesce(max(t.seq) FILTER (WHERE t.op = 't'), 0) AS truncated,
           coalesce(bool_or(t.op = 'r'), false) OR (SELECT i.status = 'building' FROM foh.index i WHERE i.id = {id}) AS exact
    FROM {stream} t WHERE t.op IN ('t', 'r')
), model AS (
    SELECT m.version, m.placed, m.first_center, m.far, m.mean, coalesce({probes}, least(m.probes, m.nearest_probes), {probes_default}) AS probes, (SELECT coalesce(sum(c.length), 0) FROM {center} c) AS rows
    FROM foh.model m WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})
), newest AS MATERIALIZED (
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.center, t.geometry, ARRAY[{included t.included_#::text}]::text[] AS included
    FROM {stream_and_inbox} t, marker m WHERE t.key IS NOT NULL AND t.op <> 'l' AND t.seq > m.truncated
      AND ($2 = 1 OR abs(hashtextextended(t.key::text, 0) % $2) = $1) ORDER BY t.key, t.seq DESC
), listed AS MATERIALIZED (
    -- Lists without a center are those of a build that is not done: no search reads them.
    SELECT u.key, u.geometry, u.marks, u.center, ARRAY[{included u.included_#::text}]::text[] AS included
    FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks, l.center{included , unnest(l.included_#) AS included_#} FROM {list} l, marker m
          WHERE m.truncated = 0 AND EXISTS (SELECT FROM {center} c WHERE c.center = l.center)) u
    WHERE $2 = 1 OR abs(hashtextextended(u.key::text, 0) % $2) = $1
), item AS MATERIALIZED (
    SELECT i.key, i.home FROM {item} i, marker m
    WHERE m.truncated = 0 AND ($2 = 1 OR abs(hashtextextended(i.key::text, 0) % $2) = $1)
), present AS MATERIALIZED (
    -- The bits of a far row are not computed: sums over its numbers might overflow.
    SELECT v.key, {checked_geometry} AS geometry, v.usable, v.far, v.included
    FROM (SELECT s.key, s.usable, s.far, s.included, CASE WHEN NOT s.far THEN s.x END AS x
          FROM (SELECT s.key, s.x, s.included, s.x IS NOT NULL AS usable, coalesce({vector}.vector_norm(s.x) > {longest}, false) AS far
                FROM (SELECT {row s.@} AS key, {vector_once} AS x, ARRAY[{included s.@::~::text}]::text[] AS included FROM {source_rows_or_table} s
                      WHERE s.{embedding} IS NOT NULL AND ($2 = 1 OR abs(hashtextextended({row s.@}::text, 0) % $2) = $1) OFFSET 0) s OFFSET 0) s OFFSET 0) v
    CROSS JOIN {quantizer} g
), current AS MATERIALIZED (
    SELECT l.key, l.geometry, l.marks, l.center, l.included FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
), flips AS (
    -- Under a budget, or before the first update after max_stale was lowered, a list may be as stale as the updater recorded.
    SELECT e.center, (SELECT greatest({max_stale}, o.stale) FROM {center} o WHERE o.center = e.center) AS bound, count(*) AS n, sum((e.marks & {code_mask}) OPERATOR({vector}.<~>) (p.marks & {code_mask})) AS bits
    FROM current e CROSS JOIN model m
    CROSS JOIN LATERAL (SELECT p.marks FROM (SELECT CASE WHEN {vector}.vector_norm(v.x) <= {longest} THEN v.x END AS x, v.labels
                                             FROM (SELECT {vector_once} AS x, {labels_read} AS labels FROM {source_of_key} OFFSET 0) v OFFSET 0) v
                        -- A row at the mean, such as an only row, has the bits that rounding gives it.
                        CROSS JOIN LATERAL {place}(v.x, v.labels) p WHERE {vector}.l2_distance(v.x, m.mean) > 1e-5 * {vector}.vector_norm(v.x) OFFSET 0) p
    -- Some thousand rows say how stale the codes are.
    WHERE NOT (SELECT m.exact FROM marker m) AND abs(hashtextextended(e.key::text, 1) % greatest(1, m.rows / 4000)) = 0
      AND NOT EXISTS (SELECT FROM {stream} t WHERE t.key = e.key)
    GROUP BY e.center
)
SELECT 1, 'a row of the source is in no list and not in the stream', p.key::text, NULL::int, NULL::text
FROM present p, marker m
WHERE NOT m.exact AND p.usable AND NOT EXISTS (SELECT FROM current c WHERE c.key = p.key)
  AND NOT EXISTS (SELECT FROM newest n WHERE n.key = p.key AND n.op = 'u')
  AND NOT EXISTS (SELECT FROM model o CROSS JOIN LATERAL (SELECT unnest(o.far::{key_type}[]) AS key) f WHERE f.key = p.key)
UNION ALL
SELECT 1, 'the embedding of a row is longer than 1e18: the row takes no part in models and lists, and every search reads it', p.key::text, NULL, NULL
FROM present p WHERE p.far
UNION ALL
SELECT 1, 'a list holds a row that is gone from the source', c.key::text, c.center, NULL
FROM current c, marker m WHERE NOT m.exact AND NOT EXISTS (SELECT FROM present p WHERE p.key = c.key AND p.usable)
UNION ALL
SELECT 1, 'the stream holds a row that is gone from the source', n.key::text, n.center, NULL
FROM newest n, marker m WHERE NOT m.exact AND n.op = 'u' AND n.geometry IS NOT NULL AND NOT EXISTS (SELECT FROM present p WHERE p.key = n.key AND p.usable)
UNION ALL
SELECT 1, 'the embedding of a row cannot be used (dimensions, NULL, NaN or infinity inside)', p.key::text, NULL, NULL
FROM present p WHERE NOT p.usable
UNION ALL
SELECT 1, 'a list or the stream has the bits of another vector than the row', e.key::text, e.center, format('%s of {geometry_bits} bits', e.geometry OPERATOR({vector}.<~>) p.geometry)
FROM (SELECT c.key, c.center, c.geometry, greatest(2, {geometry_bits} / 256) AS bound FROM current c
      UNION ALL SELECT n.key, n.center, n.geometry, 1 FROM newest n, model m WHERE n.op = 'u' AND n.version >= m.placed) e
JOIN present p ON p.key = e.key CROSS JOIN marker m
WHERE NOT m.exact AND e.geometry OPERATOR({vector}.<~>) p.geometry > e.bound
UNION ALL
SELECT 1, 'a list or the stream has other values of included columns than the row', e.key::text, e.center, format('%s, the row has %s', e.included, p.included)
FROM (SELECT c.key, c.center, c.included FROM current c
      UNION ALL SELECT n.key, n.center, n.included FROM newest n WHERE n.op = 'u' AND n.geometry IS NOT NULL) e
JOIN present p ON p.key = e.key CROSS JOIN marker m
WHERE NOT m.exact AND e.included IS DISTINCT FROM p.included AND NOT (SELECT i.included @> '[{"filled": false}]' FROM foh.index i WHERE i.id = {id})
UNION ALL
SELECT 1, 'a row is in a list more than once', l.key::text, l.center, format('%s times', count(*))
FROM listed l GROUP BY l.key, l.center HAVING count(*) > 1
UNION ALL
SELECT 1, 'a row is in more than one list', l.key::text, NULL, format('%s lists', count(DISTINCT l.center))
FROM listed l GROUP BY l.key HAVING count(DISTINCT l.center) > 1
UNION ALL
SELECT 1, 'a row is not in the list of its home', i.key::text, i.home, NULL
FROM item i WHERE NOT EXISTS (SELECT FROM listed l WHERE l.key = i.key AND l.center = i.home)
UNION ALL
SELECT 1, 'a list holds a row that has no home', l.key::text, l.center, NULL
FROM listed l WHERE NOT EXISTS (SELECT FROM item i WHERE i.key = l.key AND i.home = l.center)
UNION ALL
SELECT 1, 'the length of a list is not what its center says', NULL, c.center, format('%s rows, recorded %s', coalesce(l.n, 0), c.length)
FROM marker m CROSS JOIN {center} c LEFT JOIN (SELECT l.center, sum(cardinality(l.ids)) AS n FROM {list} l GROUP BY l.center) l ON l.center = c.center
WHERE $1 = 0 AND m.truncated = 0 AND c.length <> coalesce(l.n, 0)
UNION ALL
SELECT 1, 'a center belongs to no area: no search finds it', NULL, c.center, NULL
FROM {center} c
WHERE $1 = 0 AND NOT EXISTS (SELECT FROM (SELECT a.area, unnest(a.ids) AS center FROM {area} a WHERE a.area > 0) a
                             JOIN (SELECT unnest(r.ids) AS area FROM {area} r WHERE r.area = 0) r ON r.area = a.area WHERE a.center = c.center)
UNION ALL
SELECT 1, 'a search would not find an entry of the stream: its center is gone', n.key::text, n.center, NULL
FROM newest n, model m
WHERE n.op = 'u' AND n.center >= m.first_center AND NOT EXISTS (SELECT FROM {center} c WHERE c.center = n.center)
UNION ALL
SELECT 1, 'an entry of the stream is marked as the first of its key, and is not', e.key::text, e.center, NULL
FROM (SELECT t.key, t.center, t.version, t.op, t.fresh, lag(true, 1, false) OVER (PARTITION BY t.key, t.version ORDER BY t.seq) AS again
      FROM {stream} t WHERE t.key IS NOT NULL AND ($2 = 1 OR abs(hashtextextended(t.key::text, 0) % $2) = $1)) e
JOIN model m ON m.version = e.version LEFT JOIN item i ON i.key = e.key
WHERE e.fresh AND e.op = 'u' AND (e.again OR i.key IS NOT NULL)
UNION ALL
-- One row in ten thousand may be so: lists are looked through one after the other, some in every update.
SELECT 1, 'a search by the vector of a row would not read its list', min(h.key) FILTER (WHERE NOT h.read), NULL, format('%s of %s rows', count(*) FILTER (WHERE NOT h.read), count(*))
FROM (SELECT e.key::text, e.center = ANY (ARRAY(SELECT n.center FROM {read_by}(v.x, m.probes) n)) AS read
      FROM current e JOIN present p ON p.key = e.key CROSS JOIN model m
      CROSS JOIN LATERAL (SELECT {vector_once} AS x FROM {source_of_key} OFFSET 0) v
      WHERE p.geometry IS NOT NULL AND NOT (SELECT m.exact FROM marker m) AND abs(hashtextextended(e.key::text, 2) % greatest(1, m.rows / 20000)) = 0) h
HAVING 10000 * count(*) FILTER (WHERE NOT h.read) > count(*)
UNION ALL
-- Only a sample decides which lists are encoded again, so a single list may be past the bound, but all lists together never
-- exceed three times the bound. Two bits in a thousand are allowed for rounding.
SELECT 2, 'codes are staler than max_stale', NULL, NULL, format('%s %% of the bits', round(100 * sum(f.bits)::numeric / sum(f.n * {bits}), 2))
FROM flips f HAVING sum(f.bits) > sum((3 * f.bound + 0.002) * f.n * {bits}) + 2 * {bits}
UNION ALL
SELECT 2, 'the codes of a list are far from those of the hash functions', NULL, f.center, format('%s %% of the bits', round(100 * f.bits::numeric / (f.n * {bits}), 2))
FROM flips f WHERE f.bits > 0.25 * f.n * {bits} AND f.bits > 8 * f.bound * f.n * {bits} + {bits} / 4;
END
$body$;

-- foh: function repair, called by updaters
-- Compares source, stream and lists in one snapshot and queues the keys in which they differ. Keys only, without bits
-- or tombstones: a search or an update that reads such an entry looks at the row as it is then, so that a writer who commits meanwhile,
-- with a lower sequence number, is not undone.
CREATE OR REPLACE FUNCTION {self}() RETURNS TABLE (missing bigint, gone bigint, changed bigint)
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
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.geometry, ARRAY[{included t.included_#::text}]::text[] AS included
    FROM {stream_and_inbox} t, marker m WHERE t.key IS NOT NULL AND t.op <> 'l' AND t.seq > m.truncated ORDER BY t.key, t.seq DESC
), listed AS (
    -- Lists without a center are those of a build that is not done.
    SELECT u.key, u.geometry, u.marks, ARRAY[{included u.included_#::text}]::text[] AS included
    FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks{included , unnest(l.included_#) AS included_#} FROM {list} l, marker m
          WHERE m.truncated = 0 AND EXISTS (SELECT FROM {center} c WHERE c.center = l.center)) u
), present AS MATERIALIZED (
    SELECT v.key, p.geometry, p.marks, v.included
    FROM (SELECT v.key, v.labels, v.included, CASE WHEN {vector}.vector_norm(v.x) <= {longest} THEN v.x END AS x
          FROM (SELECT {row s.@} AS key, {vector_once} AS x, {labels_read} AS labels, ARRAY[{included s.@::~::text}]::text[] AS included FROM {source_rows_or_table} s WHERE s.{embedding} IS NOT NULL OFFSET 0) v
          WHERE v.x IS NOT NULL OFFSET 0) v
    -- A far row has no bits.
    LEFT JOIN LATERAL {place}(v.x, v.labels) p ON v.x IS NOT NULL
), indexed AS MATERIALIZED (
    -- The bits of an entry older than the centers are those of an earlier quantizer: an update reads its row in any case.
    SELECT n.key, CASE WHEN n.version >= m.placed THEN n.geometry END AS geometry, NULL::bit({mark_bits}) AS marks, n.geometry IS NOT NULL AS told, CASE WHEN n.geometry IS NOT NULL THEN n.included END AS included
    FROM newest n, foh.model m
    WHERE n.op = 'u' AND m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})
    UNION ALL
    SELECT l.key, l.geometry, l.marks, true, l.included FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
    UNION ALL
    SELECT f.key, NULL, NULL, true, NULL
    FROM foh.model m CROSS JOIN LATERAL (SELECT unnest(m.far::{key_type}[]) AS key) f LEFT JOIN present p ON p.key = f.key
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
    WHERE i.geometry OPERATOR({vector}.<~>) p.geometry > greatest(2, {geometry_bits} / 256)
       OR (i.marks & ~{code_mask}) <> (p.marks & ~{code_mask}) OR (p.geometry IS NULL AND i.geometry IS NOT NULL)
       OR i.included <> p.included AND NOT (SELECT x.included @> '[{"filled": false}]' FROM foh.index x WHERE x.id = {id})
), queued AS (
    INSERT INTO {stream} (key, op, version, center) SELECT d.key, 'u', 0, 0 FROM difference d
)
SELECT count(*) FILTER (WHERE d.kind = 'missing'), count(*) FILTER (WHERE d.kind = 'gone'), count(*) FILTER (WHERE d.kind = 'changed')
FROM difference d;
END
$body$;
