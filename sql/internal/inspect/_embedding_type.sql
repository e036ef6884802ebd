-- vector, halfvec, real[] or double precision[]; null for any other type. No SET search_path, as in foh._columns.
CREATE OR REPLACE FUNCTION foh._embedding_type(type oid) RETURNS text
LANGUAGE sql STABLE
AS $function$
    SELECT CASE
        WHEN type IN ('real[]'::regtype, 'double precision[]'::regtype) THEN format_type(type, NULL)
        ELSE (SELECT t.typname::text FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace
              WHERE t.oid = type AND e.extname = 'vector' AND t.typname IN ('vector', 'halfvec'))
    END
$function$;
