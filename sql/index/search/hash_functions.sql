-- The present hash functions and their version, for clients that encode their queries themselves: bit number n, from 0,
-- of a code is 1 where weights . x >= bias.
CREATE OR REPLACE FUNCTION {hash_functions}() RETURNS TABLE (version bigint, number int, weights {vector}.vector, bias float8)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 64
SET search_path = pg_catalog, pg_temp
AS $body$
    SELECT i.version, p.bit, p.weights, p.bias FROM foh.index i CROSS JOIN {projection} p WHERE i.id = {id}
$body$;
