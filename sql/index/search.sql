-- The rows nearest to the query. filter is a condition over the columns of the source, written by the application's
-- author; values of its users go in through params, which the filter reads as params ->> 'name'.
-- No SET clause: the filter must see the functions that its author sees.
CREATE OR REPLACE FUNCTION {search}(query {vector}.vector, k int DEFAULT 10, probes int DEFAULT NULL, shortlist int DEFAULT NULL,
                                    filter text DEFAULT NULL, params jsonb DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 COST 10000
AS $body$
BEGIN
    IF filter IS NULL THEN
        RETURN QUERY SELECT r.* FROM {search_all}(query, NULL, k, probes, shortlist) r;
    ELSE
        RETURN QUERY SELECT r.* FROM {search_filtered}(query, NULL, k, probes, shortlist, filter, params) r;
    END IF;
END
$body$;
