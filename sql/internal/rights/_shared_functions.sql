-- The functions that all indexes share and that a role of that kind calls, directly or inside others.
CREATE OR REPLACE FUNCTION foh._shared_functions(kind text) RETURNS regprocedure[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(p.oid::regprocedure ORDER BY p.proname) FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace
      AND CASE kind
              WHEN 'owner' THEN starts_with(p.proname, '_') OR p.proname IN ('create_index', 'drop_index', 'alter_index', 'refresh', 'repair', 'check',
                                                                             'grant', 'health', 'index_size', 'search')
              WHEN 'updater' THEN starts_with(p.proname, '_') AND NOT p.prosecdef OR p.proname IN ('repair', 'check', 'health', 'index_size')
              ELSE p.proname IN ('search', '_refuse_search', '_refuse_changed', '_identity')
          END
$function$;
