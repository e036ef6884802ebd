-- The factor of the learned weights that the argument labels of a search stands for (see foh._dial_factor); option dial where it is null.
-- A plain SQL function without SET, so that it is inlined. It is parsed under the search_path of whoever searches, so it names every
-- operator with its schema.
CREATE OR REPLACE FUNCTION {dial_factor}(labels float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT {dial_factor_of}
$body$;
