-- What a reader of an index calls, directly or through a search: those of the index, then those that all indexes share.
CREATE OR REPLACE FUNCTION foh._reader_functions(i foh.index) RETURNS regprocedure[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(p.oid::regprocedure ORDER BY p.proname) FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace
      AND (p.proname IN ('search', '_refuse_search', '_refuse_changed', '_fallback')
           OR p.proname IN (SELECT (i.name || '_' || s)::name FROM unnest(
                  ARRAY['search', 'search_code', 'candidates', 'encode', 'explain', 'describe', 'hash_functions', 'thresholds',
                        'near', 'exact', 'hamming', 'check_code']) s))
$function$;
