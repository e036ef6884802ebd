-- A format string for the expression that computes geometry bits. Its arguments are the schema of pgvector and the vector; g is the
-- row of the quantizer.
CREATE OR REPLACE FUNCTION foh._geometry_expression(i foh.index) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN i.geometry >= i.dimensions THEN
            '%1$s.binary_quantize((' || (SELECT string_agg('%2$s', ' OPERATOR(%1$s.||) ') FROM generate_series(1, i.geometry / i.dimensions))
            || ') OPERATOR(%1$s.-) g.threshold)'
        ELSE
            (SELECT '(SELECT %1$s.binary_quantize(' || string_agg(format('%%1$s.subvector(w.x, %s, %s)', piece * i.geometry + 1, i.geometry), ' OPERATOR(%1$s.+) ')
                    || ') FROM (SELECT ((%2$s OPERATOR(%1$s.-) g.threshold) OPERATOR(%1$s.*) g.signs)'
                    || CASE WHEN i.dimensions % i.geometry = 0 THEN ''
                            ELSE format(' OPERATOR(%%1$s.||) pg_catalog.array_fill(0::real, ARRAY[%s])::%%1$s.vector', i.geometry - i.dimensions % i.geometry) END
                    || ' AS x OFFSET 0) w)'
             FROM generate_series(0, (i.dimensions - 1) / i.geometry) AS piece) END
$function$;
