-- Whether the lists of the index can answer a search; fallback is a code that says why not (see foh._fallback). A plain
-- SQL function that returns a table, so that it is inlined.
-- unplaced: keys that neither a list nor a center leads to, those of far rows among them. A search must read their rows from the source.
CREATE OR REPLACE FUNCTION {state}() RETURNS TABLE (version bigint, truncated bigint, unplaced {key_type}[], fallback text)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT s.version, s.truncated, s.unplaced,
           CASE WHEN s.status = 'building' THEN 'building'
                WHEN NOT s.intact THEN 'changed'
                WHEN s.resync THEN 'resync'
                -- Rows are read one by one, up to about a hundredth of the table; more of them are cheaper to scan.
                WHEN cardinality(s.unplaced) > s.most THEN 'unplaced'
                WHEN s.small AND (SELECT count(*) FROM (SELECT FROM {item} LIMIT {exact_rows} + 1) x)
                     + (SELECT count(*) FROM (SELECT FROM {stream} LIMIT {exact_rows} + 1) y) <= {exact_rows} THEN 'small'
           END
    FROM (SELECT i.version, i.status, m.small, b.most, foh._source_intact(i) AS intact, t.truncated,
                 EXISTS (SELECT FROM {stream} r WHERE r.op = 'r' AND NOT r.fresh) AS resync,
                 ARRAY(SELECT u.key FROM {stream} u
                       WHERE u.center < m.first_center AND u.op = 'u' AND u.seq + 0 > t.truncated
                         AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = u.key AND {later} > u.seq AND o.op <> 'l' OFFSET 0)
                       LIMIT b.most + 1)
                 || ARRAY(SELECT f.key FROM unnest(m.far::{key_type}[]) AS f (key)
                          WHERE t.truncated = 0 AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = f.key AND o.op <> 'l' OFFSET 0)) AS unplaced
          FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version
          CROSS JOIN (SELECT coalesce(max(t.seq), 0) AS truncated FROM {stream} t WHERE t.op = 't' AND NOT t.fresh) t
          -- A page holds about 150 items. The size of the table is always up to date, unlike statistics.
          CROSS JOIN (SELECT greatest({most_unplaced}, 2 * pg_relation_size({item_text}::regclass) / 8192) AS most OFFSET 0) b
          WHERE i.id = {id} OFFSET 0) s
$body$;
