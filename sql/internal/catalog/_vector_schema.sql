-- The schema of the pgvector extension, quoted.
CREATE OR REPLACE FUNCTION foh._vector_schema() RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT quote_ident(n.nspname)
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'
$function$;
