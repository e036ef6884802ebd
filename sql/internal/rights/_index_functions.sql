-- The functions of an index that a role of that kind may call. owner: all; updater: those through which it reads the table;
-- ours: those of the table's owner that foh's owner calls; otherwise those of a reader.
CREATE OR REPLACE FUNCTION foh._index_functions(i foh.index, kind text) RETURNS regprocedure[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(p.oid::regprocedure ORDER BY p.proname), '{}') FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace
      AND p.proname IN (SELECT (i.name || '_' || s)::name FROM unnest(CASE kind
              WHEN 'owner' THEN foh._suffixes()
              WHEN 'updater' THEN ARRAY['rows', 'unchanged', 'answer', 'label_counts', 'check', 'repair', 'follow', 'describe', 'pull', 'pulled', 'inbox_stat']
              WHEN 'ours' THEN ARRAY['unchanged', 'inbox_stat']
              ELSE ARRAY['search', 'candidates', 'explain', 'describe', 'near', 'exact', 'exact_distance', 'score', 'bit_score', 'dial_factor', 'moment', 'inbox_keys']
          END) s)
$function$;
