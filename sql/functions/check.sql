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
    RETURN QUERY SELECT 1, p.problem, NULL::text, NULL::int, p.detail FROM foh._problems(i) p;
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
