-- One row per index: what it is, what it holds, and what waits for the updater.
CREATE OR REPLACE VIEW foh.index_stat WITH (security_invoker = true) AS
SELECT i.name,
       i.source_name AS source,
       coalesce(t.problem, s.problem, i.status) AS status,
       i.version,
       m.trained,
       i.bits,
       i.dimensions,
       i.distance,
       s.rows,
       s.centers,
       s.stale,
       s.stream,
       s.deferred,
       CASE WHEN s.stream = 0 THEN 0 ELSE extract(epoch FROM clock_timestamp() - s.waiting_since) END::float8 AS lag_seconds,
       (SELECT sum(z.bytes) FROM foh.index_size(i.name) z)::bigint AS bytes,
       r.last_run,
       r.last_error,
       i.options,
       -- How a search ranks: as chosen on held-out rows unless an option says otherwise. Null: the default.
       jsonb_build_object(
           'code', w.code, 'votes', w.votes,
           'probes', coalesce((i.options ->> 'probes')::int, CASE WHEN w.votes > 0 THEN m.probes ELSE m.nearest_probes END, m.probes),
           'shortlist', coalesce((i.options ->> 'shortlist')::int, CASE WHEN w.votes > 0 THEN m.shortlist ELSE m.nearest_shortlist END),
           'by_geometry_alone', w.votes = 0
       ) AS ranking
FROM foh.index i
CROSS JOIN LATERAL foh._figures(i) s
LEFT JOIN foh.model m ON m.index = i.id AND m.version = i.version
-- Without labels nothing but geometry ranks.
CROSS JOIN LATERAL (
    SELECT CASE WHEN i.labels IS NULL THEN 0 ELSE coalesce((i.options ->> 'weight_code')::float8, m.weight_code) END AS code,
           CASE WHEN i.labels IS NULL THEN 0 ELSE coalesce((i.options ->> 'weight_votes')::float8, m.weight_votes) END AS votes
) w
LEFT JOIN LATERAL (SELECT string_agg(DISTINCT c.problem, '; ') AS problem FROM foh._problems(i) c) t ON true
LEFT JOIN LATERAL (SELECT x.started_at AS last_run, x.error AS last_error FROM foh.run x WHERE x.index = i.id ORDER BY x.id DESC LIMIT 1) r ON true;
