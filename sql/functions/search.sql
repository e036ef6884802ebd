-- The search of any index, by name, with the key as text.
CREATE OR REPLACE FUNCTION foh.search(index text, query @vector@.vector, k int DEFAULT 10, probes int DEFAULT NULL,
                                      shortlist int DEFAULT NULL, filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL,
                                      recall float8 DEFAULT NULL, max_distance float8 DEFAULT NULL)
RETURNS TABLE (key text, distance float8, score float8)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 COST 10000
AS $function$
BEGIN
    -- Looked up by name, without argument types: pgvector may have moved to another schema since this function was made.
    IF index IS NULL OR NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
                                    WHERE n.nspname OPERATOR(pg_catalog.=) 'foh' AND p.proname OPERATOR(pg_catalog.=) (index OPERATOR(pg_catalog.||) '_search')::pg_catalog.name) THEN
        RAISE EXCEPTION 'foh: there is no index %', pg_catalog.quote_nullable(index) USING ERRCODE = 'undefined_object',
            HINT = 'SELECT name FROM foh.index_stat lists those there are.';
    END IF;
    RETURN QUERY EXECUTE pg_catalog.format('SELECT (r).%I::pg_catalog.text, (r).%I, (r).%I FROM foh.%I($1, $2, $3, $4, $5, $6, $7, $8, $9) r', VARIADIC
            (SELECT pg_catalog.array_agg(a.attname ORDER BY a.attnum) OPERATOR(pg_catalog.||) (index OPERATOR(pg_catalog.||) '_search')::pg_catalog.name
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
             WHERE n.nspname OPERATOR(pg_catalog.=) 'foh' AND c.relname OPERATOR(pg_catalog.=) (index OPERATOR(pg_catalog.||) '_result')::pg_catalog.name))
        USING query, k, probes, shortlist, filter, params, labels, recall, max_distance;
END
$function$;
