-- The tables of an index.
CREATE OR REPLACE FUNCTION foh._tables(i foh.index) RETURNS regclass[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- An index may be called model. The table foh.model_state is then still the one that all indexes share.
    SELECT coalesce(array_agg(c.oid::regclass ORDER BY c.relname), '{}') FROM pg_class c
    WHERE c.relnamespace = 'foh'::regnamespace AND c.relkind = 'r' AND c.relname = ANY (foh._object_names(i.name)) AND c.relname <> 'model_state'
$function$;
