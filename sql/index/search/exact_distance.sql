-- The distance of a row from a query, by the index's metric, as the operators of pgvector give it.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of whoever searches, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {exact_distance}(x {vector}.vector, query {vector}.vector) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT {exact_distance_of}
$body$;
