-- The number of rows of the source that have an embedding, or 0 where counted is false; null where the source no longer looks
-- as the index recorded it.
CREATE OR REPLACE FUNCTION {unchanged}(counted boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET row_security = off
AS $body$
BEGIN
    IF {intact}((SELECT i.source FROM foh.index i WHERE i.id = {id})) IS NOT TRUE THEN
        RETURN NULL;
    ELSIF counted THEN
        PERFORM foh._open({tables_text});
        RETURN (SELECT count(*) FROM {source} s WHERE s.{embedding} IS NOT NULL);
    END IF;
    RETURN 0;
END
$body$;
