-- Compares source, stream and lists in one snapshot; reads every row. One row of output per violation.
CREATE OR REPLACE FUNCTION {check}(caller text DEFAULT foh._identity()) RETURNS TABLE (promise int, problem text, key text, center int, detail text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
AS $body$
#variable_conflict use_column
BEGIN
PERFORM foh._guard({name}, caller);
RETURN QUERY
WITH marker AS (
    -- exact: the lists are not asked before the first build, nor while the source has to be read again.
    SELECT coalesce(max(t.seq) FILTER (WHERE t.op = 't'), 0) AS truncated,
           coalesce(bool_or(t.op = 'r'), false) OR (SELECT i.status = 'building' FROM foh.index i WHERE i.id = {id}) AS exact
    FROM {stream} t WHERE t.op IN ('t', 'r')
), newest AS (
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.center, t.code
    FROM {stream} t, marker m WHERE t.key IS NOT NULL AND t.seq > m.truncated ORDER BY t.key, t.seq DESC
), listed AS MATERIALIZED (
    -- Lists without a center are those of a build that is not done: no search reads them.
    SELECT unnest(l.ids) AS key, unnest(l.codes) AS code, l.center FROM {list} l, marker m
    WHERE m.truncated = 0 AND EXISTS (SELECT FROM {center} c WHERE c.center = l.center)
), item AS (
    SELECT i.key, i.home, i.others FROM {item} i, marker m WHERE m.truncated = 0
), present AS MATERIALIZED (
    SELECT p.key, p.code FROM {place}(ARRAY(SELECT s.{key} FROM {source} s)) p
), current AS (
    SELECT l.key, l.code, l.center FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
), flips AS (
    SELECT c.center, count(*) AS n, sum(c.code OPERATOR({vector}.<~>) p.code) AS bits
    FROM current c JOIN present p ON p.key = c.key AND p.code IS NOT NULL
    WHERE NOT (SELECT m.exact FROM marker m) GROUP BY c.center
)
SELECT 1, 'a row of the source is in no list and not in the stream', p.key::text, NULL::int, NULL::text
FROM present p, marker m
WHERE NOT m.exact AND p.code IS NOT NULL AND NOT EXISTS (SELECT FROM current c WHERE c.key = p.key)
  AND NOT EXISTS (SELECT FROM newest n WHERE n.key = p.key AND n.op = 'u')
UNION ALL
SELECT 1, 'a list holds a row that is gone from the source', c.key::text, c.center, NULL
FROM current c, marker m WHERE NOT m.exact AND NOT EXISTS (SELECT FROM present p WHERE p.key = c.key AND p.code IS NOT NULL)
UNION ALL
SELECT 1, 'the stream holds a row that is gone from the source', n.key::text, n.center, NULL
FROM newest n, marker m WHERE NOT m.exact AND n.op = 'u' AND n.code IS NOT NULL AND NOT EXISTS (SELECT FROM present p WHERE p.key = n.key AND p.code IS NOT NULL)
UNION ALL
SELECT 1, 'the embedding of a row cannot be used (dimensions, NULL, NaN or infinity inside)', s.{key}::text, NULL, NULL
FROM {source} s JOIN present p ON p.key = s.{key} WHERE p.code IS NULL AND s.{embedding} IS NOT NULL
UNION ALL
SELECT 1, 'a row is in a list more than once', l.key::text, l.center, format('%s times', count(*))
FROM listed l GROUP BY l.key, l.center HAVING count(*) > 1
UNION ALL
SELECT 1, 'a row is in more lists than it has homes', l.key::text, NULL, format('%s lists', count(*))
FROM listed l WHERE {neighbors} = 0 GROUP BY l.key HAVING count(*) > {homes}
UNION ALL
SELECT 1, 'a row is not in the list of its home', i.key::text, i.home, NULL
FROM item i WHERE NOT EXISTS (SELECT FROM listed l WHERE l.key = i.key AND l.center = i.home)
UNION ALL
SELECT 1, 'a list holds a row that has no home', l.key::text, l.center, NULL
FROM listed l WHERE NOT EXISTS (SELECT FROM item i WHERE i.key = l.key AND (i.home = l.center OR l.center = ANY (i.others)))
UNION ALL
SELECT 1, 'the length of a list is not what its center says', NULL, c.center, format('%s rows, recorded %s', l.n, c.length)
FROM {center} c, marker m, LATERAL (SELECT count(*) AS n FROM listed WHERE listed.center = c.center) l
WHERE m.truncated = 0 AND c.length <> l.n
UNION ALL
SELECT 1, 'a search would not find an entry of the stream: its center is gone, and not recorded as such', n.key::text, n.center, NULL
FROM newest n, foh.index i
WHERE i.id = {id} AND n.op = 'u' AND n.center <> 0 AND n.version >= i.version - {gone_versions} AND NOT EXISTS (SELECT FROM {center} c WHERE c.center = n.center)
  AND NOT EXISTS (SELECT FROM {gone} g WHERE g.center = n.center AND g.version > n.version)
UNION ALL
SELECT 1, 'an entry of the stream is marked as the first of its key, and is not', e.key::text, e.center, NULL
FROM {stream} e, foh.index i
WHERE i.id = {id} AND e.fresh AND e.version = i.version
  AND (EXISTS (SELECT FROM item t WHERE t.key = e.key) OR EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND o.seq < e.seq AND o.version = i.version))
UNION ALL
SELECT 1, 'a search would not find a center by its code', NULL, c.center, NULL
FROM {center} c FULL JOIN {center_code} g USING (code) WHERE g.code IS NULL OR c.code IS NULL
UNION ALL
-- A sample decides what is encoded again, so one list may be past the bound; all together may not. A bit in a thousand
-- is left to rounding.
SELECT 2, 'codes are staler than max_stale', NULL, NULL, format('%s %% of the bits', round(100 * sum(f.bits)::numeric / sum(f.n * {bits}), 2))
FROM flips f HAVING sum(f.bits) > (2 * {max_stale} + 0.001) * sum(f.n * {bits}) + 1
UNION ALL
SELECT 2, 'the codes of a list are far from those of the hash functions', NULL, f.center, format('%s %% of the bits', round(100 * f.bits::numeric / (f.n * {bits}), 2))
FROM flips f WHERE f.bits > 0.25 * f.n * {bits} AND f.bits > 8 * {max_stale} * f.n * {bits} + 4
UNION ALL
SELECT 2, 'a code in the stream is not that of the hash functions', n.key::text, n.center, format('%s bits', n.code OPERATOR({vector}.<~>) p.code)
FROM newest n JOIN present p ON p.key = n.key
WHERE NOT (SELECT m.exact FROM marker m) AND n.version = (SELECT i.version FROM foh.index i WHERE i.id = {id}) AND n.code OPERATOR({vector}.<~>) p.code > 1;
END
$body$;
