-- What a row is ranked by: its distance, and what the labels add to it. A row of another kind than the query counts as if it were so many
-- times farther away, so a row at distance 0 stays first. A negative inner product grows, too.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of whoever searches, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {score}(distance float8, lean float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT $1 OPERATOR(pg_catalog.+) (coalesce($2, 0::pg_catalog.float8) OPERATOR(pg_catalog.*) pg_catalog.abs($1))
$body$;
