-- The score of a row of which only the number of differing geometry bits is known: on the scale of the exact distance.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of whoever searches, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {bit_score}(distance int) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT $1::pg_catalog.float8 OPERATOR(pg_catalog.*) {bit_distance}
$body$;
