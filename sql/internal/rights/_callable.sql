-- The functions that a role with a right calls, directly or inside others: a reader those of one index, an updater those of all.
CREATE OR REPLACE FUNCTION foh._callable(kind text, index text DEFAULT NULL) RETURNS regprocedure[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(p.oid::regprocedure ORDER BY p.proname), '{}') FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace AND CASE kind
        WHEN 'reader' THEN
            p.proname IN ('search', '_refuse_search', '_refuse_changed')
            OR p.proname IN (SELECT index || '_' || s FROM unnest('{search,candidates,explain,describe,near,exact,exactscore,bitscore,dial,hamming,moment,visible,inboxkeys}'::text[]) s)
        ELSE
            (starts_with(p.proname, '_') AND p.proname <> '_as_owner') OR p.proname IN ('repair', 'check', 'health', 'index_size')
            OR p.proname IN (SELECT i.name || '_' || s FROM foh.index i, unnest('{rows,unchanged,answer,labelcounts,check,repair,follow,describe,pull,pulled,inboxstat}'::text[]) s)
        END
$function$;
