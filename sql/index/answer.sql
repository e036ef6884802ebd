-- What a search finds, asked with the rights of the table's owner: for an updater that measures the index.
CREATE OR REPLACE FUNCTION {answer}(query {vector}.vector, k int, caller text DEFAULT foh._identity()) RETURNS {key_type}[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
AS $body$
BEGIN
    PERFORM foh._guard({name}, caller);
    RETURN ARRAY(SELECT r.{key} FROM {search}(query, k) r);
END
$body$;
