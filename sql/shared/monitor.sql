-- What people and monitoring ask about an index: its size, its state, whether its promises hold.

-- foh: function index_size, called by updaters
-- The bytes that each table of an index takes, its indexes and TOAST included.
CREATE OR REPLACE FUNCTION foh.index_size(name text) RETURNS TABLE (part text, bytes bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.suffix, pg_total_relation_size(c.oid)
    FROM foh._index(name) i CROSS JOIN foh._object_names(i.name) WITH ORDINALITY AS s (suffix, object, at)
    JOIN pg_class c ON c.oid = ANY (foh._tables(i.name)) AND c.relname = s.object
    ORDER BY s.at
$function$;

-- The figures of one index behind the view foh.index_stat. Where they cannot be read they are null, and problem says why: one
-- index whose tables were changed by hand must not hide the others.
CREATE OR REPLACE FUNCTION foh._figures(i foh.index)
RETURNS TABLE (rows bigint, centers bigint, stale float8, stream bigint, deferred bigint, waiting_since timestamptz, problem text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    names jsonb;
    -- Of a distributed table, what waits on the nodes counts too.
    inbox text;
BEGIN
    names := foh._names(i);
    inbox := CASE WHEN to_regproc(names ->> 'inbox_stat') IS NOT NULL THEN '{inbox_stat}()' ELSE '(SELECT 0::bigint AS entries, NULL::timestamptz AS since)' END;
    RETURN QUERY EXECUTE foh._render($$
        SELECT c.rows, c.centers, c.stale, s.stream + w.entries, s.deferred + w.entries, least(s.waiting_since, w.since), NULL::text
        FROM (SELECT coalesce(sum(length), 0) AS rows, count(*) AS centers,
                     coalesce(sum(stale::float8 * length) / nullif(sum(length), 0), 0) AS stale FROM {center}) c,
             (SELECT count(*) AS stream, count(*) FILTER (WHERE op = 'u' AND geometry IS NULL) AS deferred, min(written_at) AS waiting_since
              FROM {stream}) s, $$ || inbox || ' w', names);
EXCEPTION
    WHEN connection_exception THEN
        problem := 'a node does not answer: ' || SQLERRM;
        RETURN NEXT;
    WHEN OTHERS THEN
        problem := 'it cannot be read: ' || SQLERRM;
        RETURN NEXT;
END
$function$;

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
    SELECT CASE WHEN i.labels IS NULL THEN 0 ELSE m.weight_code END AS code,
           CASE WHEN i.labels IS NULL THEN 0 ELSE m.weight_votes END AS votes
) w
LEFT JOIN LATERAL (SELECT string_agg(DISTINCT c.what || ': ' || c.cure, '; ') AS problem FROM foh._problems(i) c) t ON true
LEFT JOIN LATERAL (SELECT x.started_at AS last_run, x.error AS last_error FROM foh.run x WHERE x.index = i.id ORDER BY x.id DESC LIMIT 1) r ON true;

-- foh: function health, called by updaters
-- Whether indexes are kept up to date: a row for each that the caller may see, and in `problems` what is wrong and what to do.
-- An index is healthy if it is built, its table is as it was, no entry has waited longer than max_lag in its stream, and the
-- last run did not fail. For pg_cron and monitoring; foh-pg status --check prints the same.
CREATE OR REPLACE FUNCTION foh.health(max_lag interval DEFAULT '10 minutes')
RETURNS TABLE (name text, healthy boolean, problems text[], status text, version bigint, stream bigint, deferred bigint, stale float8,
               lag_seconds float8, last_run timestamptz, error text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    most float8 := extract(epoch FROM max_lag);
BEGIN
    IF most IS NULL OR most < 0 THEN
        RAISE EXCEPTION 'foh: max_lag is %, it must be 0 or more', coalesce(max_lag::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    SELECT s.name, p.problems = '{}', p.problems, s.status, s.version, s.stream, s.deferred, s.stale, s.lag_seconds, r.finished_at, r.error
    FROM foh.index_stat s
    JOIN foh.index i ON i.name = s.name
    -- The newest run of an updater that has ended. An evaluation is no such run.
    LEFT JOIN LATERAL (
        SELECT x.finished_at, x.error FROM foh.run x
        WHERE x.index = i.id AND x.kind <> 'evaluate' AND x.finished_at IS NOT NULL
        ORDER BY x.id DESC LIMIT 1) r ON true
    CROSS JOIN LATERAL (SELECT array_remove(ARRAY[
        CASE WHEN s.status = 'building' THEN format('not built yet: run foh-pg build %L', s.name)
             WHEN s.status <> 'ready' THEN s.status END,
        CASE WHEN s.lag_seconds > most THEN format('an entry has waited %s s in the stream, more than %s: run foh-pg update %L, or foh-pg watch --all',
                                                   round(s.lag_seconds), round(most), s.name) END,
        'the last run failed: ' || r.error], NULL) AS problems) p
    ORDER BY s.name;
END
$function$;

-- foh: function check, called by updaters
-- Verifies the promises of an index on the live data: one row per violation, none if all is well. Reads every row of
-- the source and of the lists. part, parts: only the keys of one part of several, numbered from 0. What concerns no single
-- row belongs to part 0.
-- Not STABLE, though it writes nothing: it takes its snapshot once it has the lock on the table, for which it may have waited. In
-- an older snapshot a table that was truncated meanwhile is empty, and the index is not.
CREATE OR REPLACE FUNCTION foh.check(name text, part int DEFAULT 0, parts int DEFAULT 1)
RETURNS TABLE (promise int, problem text, key text, center int, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index := foh._index(name);
BEGIN
    IF part IS NULL OR parts IS NULL OR parts < 1 OR part NOT BETWEEN 0 AND parts - 1 THEN
        RAISE EXCEPTION 'foh: there is no part % of %: parts are numbered from 0', coalesce(part::text, 'NULL'), coalesce(parts::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT 1, p.what || ': ' || p.cure, NULL::text, NULL::int, concat_ws(' ', p.was, p.is_now) FROM foh._problems(i) p;
    IF FOUND THEN
        RETURN;
    ELSIF foh._citus_kind(i.source) = 'distributed' THEN
        -- The nodes share no snapshot: a row that is written meanwhile may look wrong once, and not again.
        RETURN QUERY EXECUTE format('SELECT f.* FROM foh.%1$I($1, $2) f JOIN foh.%1$I($1, $2) s ON (s.problem, s.key, s.center) IS NOT DISTINCT FROM (f.problem, f.key, f.center)',
                                    i.name || '_check') USING part, parts;
    ELSE
        RETURN QUERY EXECUTE format('SELECT * FROM foh.%I($1, $2)', i.name || '_check') USING part, parts;
    END IF;
END
$function$;

-- foh: function repair, called by updaters
-- Finds what the triggers did not see (logical replication, session_replication_role, ATTACH and DETACH PARTITION, a
-- data-only restore) and queues it: rows missing in the index, rows gone from the source, rows whose bits or labels differ.
CREATE OR REPLACE FUNCTION foh.repair(name text) RETURNS TABLE (missing bigint, gone bigint, changed bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index := foh._index(name);
    p record;
BEGIN
    SELECT * INTO p FROM foh._problems(i) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'foh: index % cannot be repaired: % (%): %', quote_literal(name), p.what, concat_ws(' ', p.was, p.is_now), p.cure
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF i.status = 'building' THEN
        RAISE EXCEPTION 'foh: index % has not been built', quote_literal(name)
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('foh-pg build %s places its rows.', name);
    END IF;
    RETURN QUERY EXECUTE format('SELECT * FROM foh.%I()', i.name || '_repair');
END
$function$;
