-- The search for a query that the client encoded, ranked by bits alone. version, where given, is the version that the
-- bits were made for; the search fails where the index has another one.
CREATE OR REPLACE FUNCTION {search_code}(code bit, k int DEFAULT 10, probes int DEFAULT NULL, version bigint DEFAULT NULL,
                                         filter text DEFAULT NULL, params jsonb DEFAULT NULL, labels float8 DEFAULT NULL)
RETURNS SETOF {result}
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 COST 10000
AS $body$
BEGIN
    PERFORM {check_code}(code, version);
    RETURN QUERY SELECT r.* FROM {search}(NULL, k, probes, 0, filter, params, code, labels) r;
END
$body$;
