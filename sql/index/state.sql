-- Whether the lists of the index can answer a search; fallback says why not. A plain SQL function that returns a
-- table, so that it is inlined.
CREATE OR REPLACE FUNCTION {state}() RETURNS TABLE (version bigint, truncated bigint, deferred boolean, scale float8, fallback text)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT i.version,
           coalesce((SELECT max(t.seq) FROM {stream} t WHERE t.op = 't' AND NOT t.fresh), 0),
           EXISTS (SELECT FROM {stream} t WHERE t.version = 0 AND t.op = 'u'),
           m.scale,
           CASE WHEN i.status = 'building' THEN 'the index is being built'
                WHEN NOT ({source_intact}) THEN 'the source has changed'
                WHEN EXISTS (SELECT FROM {stream} t WHERE t.op = 'r' AND NOT t.fresh) THEN 'the source must be read again'
                -- A handful of rows without a code is encoded on the way; more of them are cheaper to scan.
                WHEN (SELECT count(*) FROM (SELECT FROM {stream} t WHERE t.version = 0 AND t.op = 'u' LIMIT 201) d) > 200 THEN
                    'rows wait without a code'
                WHEN NOT m.trained AND (SELECT coalesce(sum(c.length), 0) FROM {center} c)
                     + (SELECT count(*) FROM (SELECT FROM {stream} t LIMIT {exact_rows} + 1) s) <= {exact_rows} THEN
                    'the index is small and untrained'
           END
    FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version WHERE i.id = {id}
$body$;
