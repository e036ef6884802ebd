-- The exact distance of a row from a query, on the scale of a score. scale: how long the vectors are, by the present model.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of whoever searches, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {exact_score}(x {vector}.vector, query {vector}.vector, scale float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT {exact_score_of}
$body$;
