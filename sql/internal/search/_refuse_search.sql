-- Raises an error where an argument of a search makes no sense; the error names the value and the cure.
CREATE OR REPLACE FUNCTION foh._refuse_search(name text, expected int, dimensions int, k int, probes int, shortlist int, labels float8,
                                              recall float8) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    problem text := CASE
        WHEN dimensions <> expected THEN format('index %L has %s dimensions, the query has %s', name, expected, dimensions)
        WHEN k IS NULL OR k < 1 THEN format('k is %s, it must be 1 or more', coalesce(k::text, 'NULL'))
        WHEN probes < 1 THEN format('probes is %s, it must be 1 or more', probes)
        WHEN shortlist < 0 THEN format('shortlist is %s, it must be 0 (by bits alone) or more', shortlist)
        WHEN NOT labels BETWEEN 0 AND 1 THEN format('labels is %s, it must be between 0 (nearest vectors only) and 1 (likeliest to share a label)', labels)
        WHEN NOT (recall > 0 AND recall <= 1) THEN format('recall is %s, it must be above 0 and at most 1 (the exact answer)', recall)
        WHEN dimensions IS NULL THEN 'the query is NULL: pass a vector'
    END;
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'foh: %', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$function$;
