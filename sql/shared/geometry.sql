-- How many geometry bits an index has, and the expression that computes them; foh_pg/geometry.py computes the same.

-- How many numbers of a row are turned into geometry bits: its own, and for inner products one more. A vector has 16 000 numbers at the
-- most: there the one more takes the place of the last.
CREATE OR REPLACE FUNCTION foh._turned_numbers(dimensions int, distance text) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE distance WHEN 'ip' THEN least(dimensions + 1, 16000) ELSE dimensions END
$function$;

-- To how many numbers, by zeros, a row is filled up before it is turned into geometry bits: see padded_numbers in foh_pg/geometry.py.
CREATE OR REPLACE FUNCTION foh._padded_numbers(turned int) RETURNS int
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(turned + turned % 2, least(4 * (turned + turned % 2), 256))
$function$;

-- How many geometry bits an index has: what the option asks for, brought to a number that can be shared out to the turned numbers.
-- By default each has as many thresholds as make about 1280 bits: at least two, for the first 768 turned numbers where there are more.
CREATE OR REPLACE FUNCTION foh._geometry_bits(turned int, asked int) RETURNS int
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    padded constant int := foh._padded_numbers(turned);
    bits constant int := coalesce(asked, CASE WHEN padded > 768 THEN 1536
        ELSE greatest(2, (1280 + padded / 2) / padded) * padded END);
    copies constant int := greatest(2, bits / padded);
BEGIN
    RETURN least(bits / copies, padded) * copies;
END
$function$;

-- The length above which the embedding of a row is far: squares and sums of such numbers do not fit a real. The same as
-- LONGEST in foh_pg/geometry.py.
CREATE OR REPLACE FUNCTION foh._longest() RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '1e18::pg_catalog.float8'
$function$;

-- A format string for the expression that computes geometry bits. Its arguments are the schema of pgvector and the vector; g is the
-- row of the quantizer. The same arithmetic in the same order as foh_pg/geometry.py, so that the bits are the same.
-- The halves of the vector are added and subtracted again and again, the second one turned by half as much each time. By recursion:
-- a subquery for each step would run somewhat faster, and take far longer to plan.
CREATE OR REPLACE FUNCTION foh._geometry_expression(i foh.index) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    turned constant int := foh._turned_numbers(i.dimensions, i.distance);
    half constant int := foh._padded_numbers(turned) / 2;
    copies constant int := greatest(2, i.geometry / (2 * half));
    numbers constant int := i.geometry / copies;
    plus constant text := ' OPERATOR(%1$s.||) ';
    piece constant text := '%%1$s.subvector(w.%s, %s, %s)';
    zeros constant text := CASE WHEN turned = 2 * half THEN ''
        ELSE format(' OPERATOR(%%1$s.||) pg_catalog.array_fill(0::pg_catalog.float4, ARRAY[%s])::%%1$s.vector', 2 * half - turned) END;
    -- As many of the turned numbers as have thresholds.
    x text := '(SELECT ' || CASE WHEN numbers <= half THEN format(piece, 'a', 1, numbers)
                                 WHEN numbers < 2 * half THEN 'w.a' || plus || format(piece, 'b', 1, numbers - half)
                                 ELSE 'w.a' || plus || 'w.b' END
        || ' AS x FROM w WHERE w.turn OPERATOR(pg_catalog.=) 0 OFFSET 0) w';
    repeated int := 1;
BEGIN
    -- Each number is there as often as it has thresholds: doubled as long as possible, then put together.
    WHILE 4 * repeated <= copies LOOP
        x := '(SELECT w.x' || plus || 'w.x AS x FROM ' || x || ' OFFSET 0) w';
        repeated := 2 * repeated;
    END LOOP;
    RETURN '(WITH RECURSIVE w (a, b, turn) AS ('
        'SELECT w.a OPERATOR(%1$s.+) w.b, w.a OPERATOR(%1$s.-) w.b, ' || half / 2 || ' FROM (SELECT ' || format(piece, 'x', 1, half) || ' AS a, ' || format(piece, 'x', half + 1, half) || ' AS b '
            'FROM (SELECT (%2$s) OPERATOR(%1$s.*) g.signs::%1$s.vector' || zeros || ' AS x OFFSET 0) w OFFSET 0) w '
        'UNION ALL SELECT w.a OPERATOR(%1$s.+) w.b, w.a OPERATOR(%1$s.-) w.b, w.turn OPERATOR(pg_catalog./) 2 FROM (SELECT w.a, '
            || format(piece, 'b', 'w.turn OPERATOR(pg_catalog.+) 1', half || ' OPERATOR(pg_catalog.-) w.turn') || plus || format(piece, 'b', 1, 'w.turn')
            || ' AS b, w.turn FROM w WHERE w.turn OPERATOR(pg_catalog.>) 0 OFFSET 0) w'
        ') SELECT %1$s.binary_quantize((' || array_to_string(array_fill('w.x'::text, ARRAY[copies / repeated]), plus)
            || CASE WHEN copies % repeated = 0 THEN '' ELSE plus || format(piece, 'x', 1, copies % repeated * numbers) END
            || ') OPERATOR(%1$s.-) g.threshold) FROM ' || x || ')';
END
$function$;

-- The factor of the learned weights that a dial of 0 to 1 stands for: none at 0, one at a half, fifty near 1.
CREATE OR REPLACE FUNCTION foh._dial_factor(dial float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN dial >= 0.98 THEN 50 ELSE dial / (1 - dial) END
$function$;
