-- The functions that a role with a right calls, directly or inside others: a reader those of one index, an updater those of all.
CREATE OR REPLACE FUNCTION foh._callable(kind text, index text DEFAULT NULL) RETURNS regprocedure[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(p.oid::regprocedure ORDER BY p.proname), '{}') FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace AND CASE kind
        WHEN 'reader' THEN
            p.proname IN ('search', '_refuse_search', '_refuse_changed')
            OR p.proname IN (SELECT o.object FROM foh._object_names(index) o
                             WHERE o.suffix IN ('search', 'candidates', 'explain', 'describe', 'near', 'exact', 'exact_distance', 'score', 'bit_score', 'dial_factor',
                                                'moment', 'inbox_keys'))
        ELSE
            (starts_with(p.proname, '_') AND p.proname <> '_as_owner') OR p.proname IN ('repair', 'check', 'health', 'index_size')
            OR p.proname IN (SELECT o.object FROM foh.index i, foh._object_names(i.name) o
                             WHERE o.suffix IN ('rows', 'unchanged', 'answer', 'label_counts', 'check', 'repair', 'follow', 'describe', 'pull', 'pulled', 'inbox_stat'))
        END
$function$;
