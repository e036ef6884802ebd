-- The most frequent labels in a sample of about that many percent of the pages of the source.
CREATE OR REPLACE FUNCTION {label_counts}(percent float8, top int) RETURNS TABLE (name text, rows bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
#variable_conflict use_column
BEGIN
    PERFORM foh._open({tables_text});
    RETURN QUERY
        SELECT l.name, count(*)
        FROM (SELECT {labels_of} AS labels FROM {source} s TABLESAMPLE SYSTEM (percent)) r
        CROSS JOIN LATERAL (SELECT DISTINCT u.name FROM unnest(r.labels) AS u (name) WHERE u.name IS NOT NULL) l
        GROUP BY l.name ORDER BY 2 DESC, 1 LIMIT top;
END
$body$;
