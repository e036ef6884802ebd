-- Verifies the promises of an index on the live data: one row per violation, none if all is well. Reads every row of
-- the source and of the lists.
CREATE OR REPLACE FUNCTION foh.check(name text)
RETURNS TABLE (promise int, problem text, key text, center int, detail text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
-- Policies show each role its rows of foh; switched off in a session, they would be errors.
SET row_security = on
AS $function$
DECLARE
    i foh.index := foh._index(name);
BEGIN
    RETURN QUERY SELECT 1, p.problem, NULL::text, NULL::int, p.detail FROM foh._check_tables(i) p;
    IF NOT FOUND THEN
        RETURN QUERY EXECUTE format('SELECT * FROM foh.%I()', i.name || '_check');
    END IF;
END
$function$;
