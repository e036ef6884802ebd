-- The options of an index, and the arguments of foh.create_index that are checked without looking at the table.

-- The table of options: the one place for the default of each, the values it may have, when a change takes effect, and what
-- the documentation says of it. A default of null means that the value is chosen from the data. takes_effect: now, with the
-- next statement; update, with the next update; rebuild, with the next rebuild; create, it is never changed.
CREATE OR REPLACE FUNCTION foh._options()
RETURNS TABLE (name text, standard jsonb, nullable boolean, whole boolean, low numeric, high numeric, words text[], takes_effect text, meaning text)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    VALUES
    ('probes', 'null'::jsonb, true, true, 1::numeric, 1e6, NULL::text[], 'now',
     'lists that a search reads; null: as chosen on held-out rows, else by the number of centers'),
    ('shortlist', 'null', true, true, 0, 1e5, NULL, 'now',
     'rows ranked with the exact distance; 0: none, by bits alone; null: as chosen on held-out rows, else 30'),
    ('recall', 'null', true, false, 0.01, 0.999, NULL, 'now',
     'share of the ten nearest rows that a search shall find; probes and shortlist follow from it, as measured on held-out rows. null: 0.95 where labels do not count, unless that costs too much'),
    ('dial', '0.5', false, false, 0, 1, NULL, 'now',
     'how much labels count in a search that does not say: 0 nothing, 0.5 as learned, 1 more than distance'),
    ('exact_rows', '1000', false, true, 0, 1e9, NULL, 'now',
     'an untrained index up to this size is searched exactly'),
    ('geometry', 'null', true, true, 1, 16000, NULL, 'create',
     'geometry bits of a row; null: by the dimensions'),
    ('centers', 'null', true, true, 1, 1e6, NULL, 'update',
     'number of centers; null: about rows ^ (2/3)'),
    ('label_weight', '1.0', false, false, 0, 1e6, NULL, 'update',
     'how far stored codes lean on the labels of their rows; 0: the symmetric codes of the paper'),
    ('max_stale', '0.01', false, false, 0, 1, NULL, 'update',
     'share of flipped bits above which a list is encoded again'),
    ('budget', 'null', true, true, 1, 1e12, NULL, 'update',
     'rows encoded again in one run at the most'),
    ('forget', '1.0', false, false, 0.01, 1, NULL, 'update',
     'what a version keeps of the sums of the one before; below 1 old rows count less and less'),
    ('learn_rows', '2000', false, true, 1, 1e7, NULL, 'update',
     'new labelled rows that make a step of learning'),
    ('held_out', '0.02', false, false, 0, 0.5, NULL, 'update',
     'share of rows, by a hash of the key, that never train'),
    ('keep_versions', '3', false, true, 1, 100, NULL, 'update',
     'models that `foh-pg build --version` can return to'),
    ('triggers', '"auto"', false, NULL, NULL, NULL, '{auto,statement,row,always}', 'now',
     'auto, statement, row, or always (row triggers that fire on replication too)'),
    ('seed', '0', false, true, 0, 4294967295, NULL, 'rebuild',
     'seed of all random numbers: builds with the same seed on the same rows learn the same')
$function$;

-- Every option of an index and its default.
CREATE OR REPLACE FUNCTION foh._default_options() RETURNS jsonb
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_object_agg(o.name, o.standard) FROM foh._options() o
$function$;

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
            WHEN o.type = 'null' THEN CASE WHEN NOT o.nullable AND base IS NULL THEN 'a value' END
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
        -- Null gives an option of an index its default back.
        IF o.type = 'null' THEN
            given := jsonb_set(given, ARRAY[o.key], known -> o.key);
        END IF;
        -- 3.0 is a whole number too; it is stored as 3, since its readers expect an integer.
        IF o.whole AND o.type = 'number' THEN
            given := jsonb_set(given, ARRAY[o.key], to_jsonb(trunc(o.value::numeric)));
        END IF;
    END LOOP;
    RETURN coalesce(base, known) || given;
END
$function$;

-- Checks the arguments of foh.create_index that can be judged without the table. The name of an index begins the names of its tables and
-- functions, and is written into them.
CREATE OR REPLACE FUNCTION foh._check_arguments(name text, bits int, distance text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    taken text;
BEGIN
    IF name IS NULL OR name !~ '^[a-z][a-z0-9_]{0,39}$' THEN
        RAISE EXCEPTION 'foh: % cannot be the name of an index', quote_nullable(name)
            USING ERRCODE = 'invalid_name',
                  HINT = 'A name has lower-case letters, digits and underscores, 40 at the most, and begins with a letter: products, or shop_items_2.';
    ELSIF EXISTS (SELECT FROM foh.index x WHERE x.name = _check_arguments.name) THEN
        RAISE EXCEPTION 'foh: index % exists already', quote_literal(name) USING ERRCODE = 'duplicate_object',
            HINT = format('Choose another name; or SELECT foh.drop_index(%L) removes that index.', name);
    ELSIF bits IS NULL OR bits NOT BETWEEN 8 AND 1024 THEN
        RAISE EXCEPTION 'foh: bits is %, it must be between 8 and 1024 (64 suits most tables)', coalesce(bits::text, 'NULL') USING ERRCODE = 'invalid_parameter_value';
    ELSIF distance IS NULL OR distance NOT IN ('cosine', 'l2', 'ip') THEN
        RAISE EXCEPTION 'foh: distance is %, it must be cosine, l2 or ip', coalesce(quote_literal(distance), 'NULL') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT min(o.object) INTO taken FROM foh._object_names(name) o
    WHERE EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'foh'::regnamespace AND c.relname = o.object)
       OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = o.object);
    IF taken IS NOT NULL THEN
        RAISE EXCEPTION 'foh: index name % is not free: schema foh has % already', quote_literal(name), quote_ident(taken) USING ERRCODE = 'duplicate_object';
    END IF;
END
$function$;
