-- The figures of one index behind the view foh.index_stat. Where they cannot be read they are null, and problem says why: one
-- index whose tables somebody changed must not hide the others.
CREATE OR REPLACE FUNCTION foh._figures(i foh.index)
RETURNS TABLE (rows bigint, centers bigint, stale float8, stream bigint, deferred bigint, waiting_since timestamptz, problem text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    names jsonb;
    -- A row is in as many lists as it has homes; with neighbors besides, only the items say how many rows there are.
    rows_of text := CASE WHEN (i.options ->> 'neighbors')::int > 0 THEN '(SELECT count(*) FROM {item})'
                         ELSE 'coalesce(sum(length) / greatest(1, least({homes}, count(*))), 0)::bigint' END;
    -- Of a distributed table, what waits on the nodes counts too.
    inbox text;
BEGIN
    names := foh._names(i);
    inbox := CASE WHEN to_regproc(names ->> 'inbox_stat') IS NOT NULL THEN '{inbox_stat}()' ELSE '(SELECT 0::bigint AS entries, NULL::timestamptz AS since)' END;
    RETURN QUERY EXECUTE foh._render('
        SELECT c.rows, c.centers, c.stale, s.stream + w.entries, s.deferred + w.entries, least(s.waiting_since, w.since), NULL::text
        FROM (SELECT ' || rows_of || $$ AS rows, count(*) AS centers,
                     coalesce(sum(stale::float8 * length) / nullif(sum(length), 0), 0) AS stale FROM {center}) c,
             (SELECT count(*) AS stream, count(*) FILTER (WHERE op = 'u' AND geometry IS NULL) AS deferred, min(written_at) AS waiting_since
              FROM {stream}) s, $$ || inbox || ' w', names);
EXCEPTION WHEN OTHERS THEN
    problem := 'it cannot be read: ' || SQLERRM;
    RETURN NEXT;
END
$function$;
