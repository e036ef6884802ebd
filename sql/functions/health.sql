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
