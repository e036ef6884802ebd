-- The given options over the defaults, each checked; an unknown name is an error that lists the known ones.
CREATE OR REPLACE FUNCTION foh._check_options(given jsonb, base jsonb DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    known jsonb := foh._default_options();
    unknown text;
    o record;
    problem text;
BEGIN
    IF jsonb_typeof(given) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'foh: options must be a JSON object, not %', coalesce(given::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT string_agg(quote_literal(k), ', ') INTO unknown FROM jsonb_object_keys(given) k WHERE NOT known ? k;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'foh: unknown option %', unknown
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Known options: ' || (SELECT string_agg(k, ', ' ORDER BY k) FROM jsonb_object_keys(known) k) || '.';
    END IF;
    FOR o IN
        SELECT e.key, e.value, jsonb_typeof(e.value) AS type, r.whole, r.low, r.high, r.nullable, r.words
        FROM jsonb_each(given) e JOIN foh._options() r ON r.name = e.key
    LOOP
        problem := CASE
            WHEN o.type = 'null' THEN CASE WHEN NOT o.nullable THEN 'a value' END
            WHEN o.words IS NOT NULL THEN
                CASE WHEN o.type <> 'string' OR NOT o.value #>> '{}' = ANY (o.words) THEN 'one of ' || array_to_string(o.words, ', ') END
            WHEN o.type <> 'number' THEN 'a number'
            WHEN o.value::numeric NOT BETWEEN o.low AND o.high THEN format('between %s and %s', o.low, o.high)
            WHEN o.whole AND o.value::numeric <> trunc(o.value::numeric) THEN 'a whole number'
        END;
        IF problem IS NOT NULL THEN
            RAISE EXCEPTION 'foh: option % is %, it must be %', quote_literal(o.key), o.value, problem
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        -- 3.0 is a whole number too; it is stored as 3, since its readers expect an integer.
        IF o.whole AND o.type = 'number' THEN
            given := jsonb_set(given, ARRAY[o.key], to_jsonb(trunc(o.value::numeric)));
        END IF;
    END LOOP;
    given := coalesce(base, known) || given;
    IF (given ->> 'homes')::int = 0 AND (given ->> 'neighbors')::int = 0 THEN
        RAISE EXCEPTION 'foh: homes and neighbors are both 0: no row would be in any list'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave homes at 1.';
    END IF;
    RETURN given;
END
$function$;
