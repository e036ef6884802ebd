-- A format string for the expression that computes geometry bits. Its arguments are the schema of pgvector and the vector; g is the
-- row of the quantizer. The same arithmetic in the same order as foh_pg/geometry.py, so that the bits are the same.
-- Each step is a subquery of its own: what one step computes, the next one reads twice.
CREATE OR REPLACE FUNCTION foh._geometry_expression(i foh.index) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    half constant int := (i.dimensions + 1) / 2;
    copies constant int := greatest(2, i.geometry / (2 * half));
    numbers constant int := i.geometry / copies;
    doublings int := 0;
    steps int;
    turned text;
    piece constant text := '%%1$s.subvector(w.%s, %s, %s)';
    plus constant text := ' OPERATOR(%1$s.||) ';
    -- How often the numbers are repeated in w.x, and how often w.x is then.
    repeated int := 1;
BEGIN
    WHILE 2 << doublings <= 2 * half LOOP
        doublings := doublings + 1;
    END LOOP;
    steps := least(doublings, greatest(5, doublings - 3));
    -- The second half is filled up with a zero where the dimensions are odd.
    turned := '(SELECT ' || format(piece, 'x', 1, half) || ' AS a, '
        || concat_ws(plus, CASE WHEN i.dimensions > half THEN format(piece, 'x', half + 1, i.dimensions - half) END,
                           CASE WHEN i.dimensions % 2 = 1 THEN '''[0]''::%1$s.vector' END)
        || ' AS b FROM (SELECT %2$s OPERATOR(%1$s.*) g.signs::%1$s.vector AS x OFFSET 0) w OFFSET 0) w';
    FOR step IN 0 .. steps - 1 LOOP
        IF step > 0 THEN
            turned := '(SELECT w.a, ' || format(piece, 'b', (half >> step) + 1, half - (half >> step)) || plus || format(piece, 'b', 1, half >> step)
                || ' AS b FROM ' || turned || ' OFFSET 0) w';
        END IF;
        turned := '(SELECT w.a OPERATOR(%1$s.+) w.b AS a, w.a OPERATOR(%1$s.-) w.b AS b FROM ' || turned || ' OFFSET 0) w';
    END LOOP;
    turned := '(SELECT ' || CASE WHEN numbers = 2 * half THEN 'w.a' || plus || 'w.b'
                                 WHEN numbers <= half THEN format(piece, 'a', 1, numbers)
                                 ELSE 'w.a' || plus || format(piece, 'b', 1, numbers - half) END
        || ' AS x FROM ' || turned || ' OFFSET 0) w';
    WHILE 4 * repeated <= copies LOOP
        turned := '(SELECT w.x' || plus || 'w.x AS x FROM ' || turned || ' OFFSET 0) w';
        repeated := 2 * repeated;
    END LOOP;
    RETURN '(SELECT %1$s.binary_quantize((' || rtrim(repeat('w.x' || plus, copies / repeated), plus)
        || CASE WHEN copies % repeated = 0 THEN '' ELSE plus || format(piece, 'x', 1, copies % repeated * numbers) END
        || ') OPERATOR(%1$s.-) g.threshold) FROM ' || turned || ')';
END
$function$;
