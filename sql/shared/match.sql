-- Conditions that a search has on included columns and labels: argument match.

-- What the placeholders of fragment near_body stand for that have to do with conditions: nothing in near, and in near_matching (matching) what reads
-- argument tests and compares; and those of rank_matching, which begin with row. For each included column, by its place: asked_1 (whether it is asked for, and the lists have it), listed_1 and ranged_1 (whether there are sets, and bounds), among_1 and
-- without_1 (sets), above_1, from_1, below_1 and upto_1 (bounds), nulls_1 (whether a NULL passes). See foh._match_column.
-- The signature of labels tells which rows cannot have a label. A label that is not in the dictionary is in no signature, and an entry of the
-- stream may be older than the dictionary: there the row itself is asked.
CREATE OR REPLACE FUNCTION foh._matching_names(i foh.index, matching boolean) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    made record;
    marks constant text := format('B''%s''', repeat('0', i.bits + CASE WHEN i.labels IS NULL THEN 0 ELSE 64 END));
    labels constant text := CASE WHEN i.labels IS NOT NULL THEN
        '(one_label IS NULL OR get_bit(%1$s.marks, one_label) = 1) AND (any_labels IS NULL OR bit_count(%1$s.marks & any_labels) > 0)'
        ' AND (all_labels IS NULL OR (%1$s.marks & all_labels) = all_labels)' ELSE 'true' END;
BEGIN
    IF NOT matching THEN
        RETURN jsonb_build_object(
            'match_declared', '', 'match_read', '', 'match_lists', '', 'match_again', '', 'included_asked', '', 'included_streamed', '', 'passing', '', 'passing_and', '',
            'passing_stream', '', 'row_passing', '', 'row_match_declared', '', 'row_match_read', '', 'marks_read', 'lean > 0::float8', 'looked_at_least', foh._ranking() -> 'looked', 'first_lists', '1 + most / 16', 'kept', 'wanted',
            'fewer_rows', '0.5::float8');
    END IF;
    SELECT coalesce(string_agg(format('asked_%1$s boolean; nulls_%1$s boolean; listed_%1$s boolean; ranged_%1$s boolean; among_%1$s %2$s[]; without_%1$s %2$s[]; above_%1$s %2$s; from_%1$s %2$s; below_%1$s %2$s; upto_%1$s %2$s;', c.at, c.kept), ' '), '') AS declared,
           string_agg(format('asked_%1$s, nulls_%1$s, listed_%1$s, ranged_%1$s, among_%1$s, without_%1$s, above_%1$s, from_%1$s, below_%1$s, upto_%1$s', c.at), ', ') AS variables,
           coalesce(string_agg(format($$asked_%1$s := tests ? '%1$s nulls';
    IF asked_%1$s THEN
        nulls_%1$s := tests -> '%1$s nulls';
        listed_%1$s := tests ?| ARRAY['%1$s among', '%1$s without'];
        ranged_%1$s := tests ?| ARRAY['%1$s >', '%1$s >=', '%1$s <', '%1$s <='];
        among_%1$s := tests ->> '%1$s among';
        without_%1$s := tests ->> '%1$s without';
        above_%1$s := tests ->> '%1$s >';
        from_%1$s := tests ->> '%1$s >=';
        below_%1$s := tests ->> '%1$s <';
        upto_%1$s := tests ->> '%1$s <=';
    END IF;$$, c.at), E'\n    '), '') AS assigned,
           string_agg(format($$tests ? '%1$s nulls' AND (i.included -> %3$s ->> 'filled')::boolean, (tests ->> '%1$s nulls')::boolean, tests ?| ARRAY['%1$s among', '%1$s without'], tests ?| ARRAY['%1$s >', '%1$s >=', '%1$s <', '%1$s <='], (tests ->> '%1$s among')::%2$s[], (tests ->> '%1$s without')::%2$s[], (tests ->> '%1$s >')::%2$s, (tests ->> '%1$s >=')::%2$s, (tests ->> '%1$s <')::%2$s, (tests ->> '%1$s <=')::%2$s$$,
                             c.at, c.kept, c.at - 1), ', ') AS "values",
           coalesce(string_agg(format(', unnest(CASE WHEN asked_%1$s THEN l.included_%2$s END) AS included_%2$s', c.at, c.slot), ''), '') AS asked,
           coalesce(string_agg(', t.included_' || c.slot, ''), '') AS streamed,
           -- The flags listed and ranged spare most entries half of the comparisons.
           coalesce(string_agg(format('(NOT asked_%1$s OR CASE WHEN %%1$s.included_%2$s IS NULL THEN nulls_%1$s ELSE '
                                      '(NOT listed_%1$s OR (among_%1$s IS NULL OR %%1$s.included_%2$s%3$s = ANY (among_%1$s)) AND (without_%1$s IS NULL OR %%1$s.included_%2$s%3$s <> ALL (without_%1$s))) '
                                      'AND (NOT ranged_%1$s OR (above_%1$s IS NULL OR %%1$s.included_%2$s%3$s > above_%1$s) AND (from_%1$s IS NULL OR %%1$s.included_%2$s%3$s >= from_%1$s) '
                                      'AND (below_%1$s IS NULL OR %%1$s.included_%2$s%3$s < below_%1$s) AND (upto_%1$s IS NULL OR %%1$s.included_%2$s%3$s <= upto_%1$s)) END)',
                                      c.at, c.slot, replace(c.collated, '%', '%%%%')), ' AND '), 'true') AS passing
    INTO made
    FROM (SELECT c.at, c.value ->> 'kept' AS kept, c.value ->> 'slot' AS slot,
                 CASE WHEN c.value ->> 'kept' = 'text' AND NOT (c.value ->> 'enum')::boolean THEN foh._collate(i.source, (c.value ->> 'name')::name) ELSE '' END AS collated
          FROM jsonb_array_elements(i.included) WITH ORDINALITY AS c (value, at) ORDER BY c.at) c;
    RETURN jsonb_build_object(
        'match_declared', made.declared || ' any_labels varbit; all_labels varbit; one_label int; model_version bigint; more int; asked constant int := probes; fewest int; everywhere float8;',
        'match_read', CASE WHEN made.variables IS NULL THEN '' ELSE format('SELECT %s INTO %s FROM foh.index i WHERE i.id = %s;', made."values", made.variables, i.id) END
            || CASE WHEN i.labels IS NULL THEN '' ELSE format($$
    IF tests ? 'labels_any' OR tests ? 'labels_all' THEN
        SELECT CASE WHEN count(*) FILTER (WHERE d.name = ANY ((tests ->> 'labels_any')::text[])) = (SELECT count(DISTINCT u.name) FROM unnest((tests ->> 'labels_any')::text[]) AS u (name))
                    THEN bit_or(set_bit(%1$s, d.label %% 64, 1)) FILTER (WHERE d.name = ANY ((tests ->> 'labels_any')::text[])) END,
               bit_or(set_bit(%1$s, d.label %% 64, 1)) FILTER (WHERE d.name = ANY ((tests ->> 'labels_all')::text[]))
        INTO any_labels, all_labels
        FROM (SELECT DISTINCT u.name FROM unnest(coalesce((tests ->> 'labels_any')::text[], '{}') || coalesce((tests ->> 'labels_all')::text[], '{}')) AS u (name)) u
        CROSS JOIN LATERAL (SELECT d.name, d.label FROM foh.label d WHERE d.name = u.name AND d.index + 0 = %2$s OFFSET 0) d;
        model_version := (SELECT i.version FROM foh.index i WHERE i.id = %2$s);
        -- A single label is a single bit, which is read without a copy of the marks.
        IF bit_count(any_labels) = 1 THEN
            one_label := position(B'1' IN any_labels) - 1;
            any_labels := NULL;
        ELSIF bit_count(all_labels) = 1 THEN
            one_label := position(B'1' IN all_labels) - 1;
            all_labels := NULL;
        END IF;
    END IF;$$, marks, i.id) END,
        'row_match_declared', made.declared,
        'row_match_read', made.assigned,
        'row_passing', format(made.passing, 'u')
            || ' AND (NOT labelled OR (labels_any IS NULL OR u.labels && labels_any) AND (labels_all IS NULL OR u.labels @> labels_all)'
               ' AND (labels_none IS NULL OR coalesce(NOT u.labels && labels_none, true)))',
        'included_asked', made.asked,
        'included_streamed', made.streamed || ', t.version',
        'passing', format(' WHERE %s AND %s', format(made.passing, 'u'), format(labels, 'u')),
        'passing_and', format('%s AND %s AND ', format(made.passing, 'u'), format(labels, 'u')),
        'marks_read', 'lean > 0::float8 OR num_nonnulls(one_label, any_labels, all_labels) > 0',
        'first_lists', 'least(1 + most / (16 * coalesce(share, 1)), 1e6)::int',
        'kept', 'looked',
        'passing_only', format('%s AND %s', format(made.passing, 'u'), format(labels, 'u')),
        'passing_stream', format(' WHERE %s AND (t.version IS DISTINCT FROM model_version OR %s)', format(made.passing, 't'), format(labels, 't')),
        'looked_at_least', foh._ranking() -> 'looked',
        'fewer_rows', '1::float8');
END
$function$;

-- How conditions on the labels are written for an index, over the row s of its source, with %s for an array of labels; null where it has none.
CREATE OR REPLACE FUNCTION foh._label_conditions(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Each passes through format twice more.
    label constant text := 's.' || replace(quote_ident(i.labels), '%', '%%%%');
    kind constant text := (SELECT foh._label_kind(a.atttypid) FROM pg_attribute a
                           WHERE a.attrelid = i.source AND i.labels_from IS NULL AND a.attname = i.labels AND NOT a.attisdropped);
    -- As it is where it can be, so that an index of the application's is used.
    plain constant boolean := i.labels_type IN ('text', 'text[]', 'character varying', 'character varying[]');
    written text;
    lookup text;
BEGIN
    IF i.labels IS NULL THEN
        RETURN NULL;
    ELSIF i.labels_from IS NOT NULL THEN
        lookup := replace(format('(SELECT FROM %s t WHERE %s AND t.%I::pg_catalog.text OPERATOR(pg_catalog.=) ', i.labels_from_name,
                                 (SELECT string_agg(format('t.%I OPERATOR(pg_catalog.=) s.%I%s', i.labels_key[n], i.key[n], foh._collate(i.labels_from, i.labels_key[n])), ' AND ')
                                  FROM generate_subscripts(i.key, 1) n), i.labels), '%', '%%');
        RETURN jsonb_build_object(
            'any', 'EXISTS ' || lookup || 'ANY (%s::pg_catalog.text[]))',
            'all', 'NOT EXISTS (SELECT FROM pg_catalog.unnest(%s::pg_catalog.text[]) AS u (name) WHERE NOT EXISTS ' || lookup || 'u.name))',
            'none', 'NOT EXISTS ' || lookup || 'ANY (%s::pg_catalog.text[]))');
    ELSIF kind = 'json' THEN
        written := format('(pg_catalog.jsonb_typeof(%1$s) OPERATOR(pg_catalog.<>) ''object'' AND %1$s OPERATOR(pg_catalog.%%s) %%%%s::pg_catalog.text[])', label);
        RETURN jsonb_build_object('any', format(written, '?|'), 'all', format(written, '?&'), 'none', 'coalesce(NOT ' || format(written, '?|') || ', true)');
    ELSIF kind = 'many' THEN
        written := format('(%s%s OPERATOR(pg_catalog.%%s) %%%%s::pg_catalog.text[])', label, CASE WHEN i.labels_type <> 'text[]' THEN '::pg_catalog.text[]' END);
        RETURN jsonb_build_object('any', format(written, '&&'), 'all', format(written, '@>'), 'none', 'coalesce(NOT ' || format(written, '&&') || ', true)');
    END IF;
    written := label || CASE WHEN NOT plain THEN '::pg_catalog.text' ELSE '' END || ' OPERATOR(pg_catalog.=) %s (%%s::pg_catalog.text[])';
    RETURN jsonb_build_object('any', format(written, 'ANY'), 'all', format(written, 'ALL'), 'none', 'coalesce(NOT (' || format(written, 'ANY') || '), true)');
END
$function$;

-- foh: function _match_value, called by readers
-- The value of a condition as text, or an error where the column cannot have it. This function and those that follow have no SET search_path,
-- which would cost every search that has a condition: foh._matched, which calls them, sets one.
CREATE OR REPLACE FUNCTION foh._match_value(name text, included jsonb, value jsonb) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
DECLARE
    kind constant text := jsonb_typeof(value);
    kinds constant text[] := CASE included ->> 'kept' WHEN 'boolean' THEN '{boolean}'::text[]
        WHEN 'text' THEN '{string}' WHEN 'uuid' THEN '{string}' WHEN 'date' THEN '{string}'
        WHEN 'timestamp without time zone' THEN '{string}' WHEN 'timestamp with time zone' THEN '{string}'
        -- A number may stand in a string: JSON has no NaN, and programs read long numbers inexactly.
        ELSE '{number,string}' END;
BEGIN
    IF NOT kind = ANY (kinds) OR NOT pg_input_is_valid(value #>> '{}', included ->> 'type') THEN
        RAISE EXCEPTION 'foh: match asks column % of index % for %, which is no %', quote_ident(included ->> 'name'), quote_literal(name), value, included ->> 'type'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = CASE WHEN kind IN ('array', 'object') THEN 'A column is compared with a value, a list of values, null, or an object of =, not, <, <=, > and >=.'
                              ELSE format('Values of type %s are written as a JSON %s.', included ->> 'type', array_to_string(kinds, ' or ')) END;
    END IF;
    RETURN value #>> '{}';
END
$function$;

-- foh: function _match_column, called by readers
-- A condition on one included column: in SQL over the source s, and, for the step that reads lists, as data. See foh._matched.
CREATE OR REPLACE FUNCTION foh._match_column(name text, included jsonb, spec jsonb, OUT condition text, OUT test jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
DECLARE
    about constant text := format('s.%I', included ->> 'name');
    type constant text := included ->> 'type';
    -- The names of its tests begin with the place of the column.
    at constant text := (included ->> 'at') || ' ';
    conditions text[] := '{}';
    asked record;
    given text[];
    empty boolean;
BEGIN
    IF (included ->> 'enum')::boolean THEN
        PERFORM foh._refuse_renamed(name, included ->> 'name');
    END IF;
    IF jsonb_typeof(spec) <> 'object' THEN
        spec := jsonb_build_object('=', spec);
    ELSIF spec = '{}' THEN
        RAISE EXCEPTION 'foh: match says nothing of column %', quote_ident(included ->> 'name') USING ERRCODE = 'invalid_parameter_value',
            HINT = 'A column is compared with a value, a list of values, null, or an object of =, not, <, <=, > and >=.';
    END IF;
    test := jsonb_build_object(at || 'nulls', false);
    FOR asked IN SELECT e.key AS operator, e.value FROM jsonb_each(spec) e LOOP
        IF asked.operator IN ('=', 'not') THEN
            given := ARRAY(SELECT foh._match_value(name, included, v.value)
                           FROM jsonb_array_elements(CASE jsonb_typeof(asked.value) WHEN 'array' THEN asked.value ELSE jsonb_build_array(asked.value) END) v
                           WHERE v.value <> 'null');
            empty := asked.value = 'null' OR jsonb_typeof(asked.value) = 'array' AND asked.value @> 'null';
            IF asked.operator = '=' THEN
                conditions := conditions || (CASE
                    WHEN cardinality(given) = 0 THEN CASE WHEN empty THEN format('%s IS NULL', about) ELSE 'false' END
                    WHEN cardinality(given) = 1 THEN format('(%s OPERATOR(pg_catalog.=) %L::%s%s)', about, given[1], type, CASE WHEN empty THEN format(' OR %s IS NULL', about) END)
                    ELSE format('(%s OPERATOR(pg_catalog.=) ANY (%L::%s[])%s)', about, given, type, CASE WHEN empty THEN format(' OR %s IS NULL', about) END) END);
                -- No other comparison lets a NULL pass.
                test := test || jsonb_build_object(at || 'among', given::text, at || 'nulls', empty AND spec - '=' = '{}');
            ELSE
                conditions := conditions || format('%s IS NOT NULL', about);
                IF cardinality(given) > 0 THEN
                    conditions := conditions || format('%s OPERATOR(pg_catalog.<>) ALL (%L::%s[])', about, given, type);
                    test := test || jsonb_build_object(at || 'without', given::text);
                END IF;
            END IF;
        ELSIF asked.operator IN ('<', '<=', '>', '>=') THEN
            given := ARRAY[foh._match_value(name, included, asked.value)];
            conditions := conditions || format('%s OPERATOR(pg_catalog.%s) %L::%s', about, asked.operator, given[1], type);
            test := test || jsonb_build_object(at || asked.operator, given[1]);
        ELSE
            RAISE EXCEPTION 'foh: match asks column % for the unknown comparison %', quote_ident(included ->> 'name'), quote_literal(asked.operator)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'There are =, not, <, <=, > and >=.';
        END IF;
    END LOOP;
    IF (included ->> 'enum')::boolean AND spec ?| ARRAY['<', '<=', '>', '>='] THEN
        test := foh._match_enum(type, at, test);
    END IF;
    condition := array_to_string(conditions, ' AND ');
END
$function$;

-- foh: function _match_enum, called by readers
-- A range of an enum as the set of its values: lists keep them as text, which has another order.
CREATE OR REPLACE FUNCTION foh._match_enum(type text, at text, test jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    WITH value AS (
        SELECT e.enumlabel::text AS label, e.enumsortorder AS place FROM pg_enum e WHERE e.enumtypid = to_regtype(type)
    )
    SELECT (test - ARRAY[at || '<', at || '<=', at || '>', at || '>=']) || jsonb_build_object(at || 'among', ARRAY(
        SELECT v.label FROM value v
        WHERE (NOT test ? (at || 'among') OR v.label = ANY ((test ->> (at || 'among'))::text[]))
          AND (NOT test ? (at || '<') OR v.place < (SELECT b.place FROM value b WHERE b.label = test ->> (at || '<')))
          AND (NOT test ? (at || '<=') OR v.place <= (SELECT b.place FROM value b WHERE b.label = test ->> (at || '<=')))
          AND (NOT test ? (at || '>') OR v.place > (SELECT b.place FROM value b WHERE b.label = test ->> (at || '>')))
          AND (NOT test ? (at || '>=') OR v.place >= (SELECT b.place FROM value b WHERE b.label = test ->> (at || '>='))))::text)
$function$;

-- foh: function _match_labels, called by readers
-- A condition on the labels: in SQL over the source s, and as data. forms: how each is written for this index (see foh._label_conditions).
CREATE OR REPLACE FUNCTION foh._match_labels(name text, forms jsonb, spec jsonb, OUT condition text, OUT test jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
DECLARE
    conditions text[] := '{}';
    asked record;
    given text[];
BEGIN
    IF jsonb_typeof(spec) <> 'object' THEN
        spec := jsonb_build_object('any', CASE jsonb_typeof(spec) WHEN 'array' THEN spec ELSE jsonb_build_array(spec) END);
    END IF;
    test := '{}';
    FOR asked IN SELECT e.key AS operator, e.value FROM jsonb_each(spec) e LOOP
        IF NOT forms ? asked.operator OR jsonb_typeof(asked.value) <> 'array'
           OR asked.value @? '$[*] ? (@.type() != "string" || @ == "")' THEN
            RAISE EXCEPTION 'foh: match asks for the labels %', jsonb_build_object(asked.operator, asked.value) USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Labels are asked for with a label, a list of labels, or an object of any, all and none, each with a list of labels.';
        END IF;
        given := ARRAY(SELECT jsonb_array_elements_text(asked.value));
        conditions := conditions || format(forms ->> asked.operator, quote_literal(given));
        test := test || jsonb_build_object('labels_' || asked.operator, given::text);
    END LOOP;
    condition := coalesce(nullif(array_to_string(conditions, ' AND '), ''), 'true');
END
$function$;

-- foh: function _matched, called by readers
-- What argument match of a search asks for, checked: a condition in SQL over the row s of the source, for what runs with the rights of the
-- caller; and tests, the same as data, for the step that reads lists with the rights of foh's owner. No text of the caller runs there: that
-- step casts values to the types of pg_catalog and compares them by operators of pg_catalog, in statements of its own.
-- included: the included columns by name, as _included_names writes them. labels: see foh._match_labels; JSON's null where
-- the index has none.
CREATE OR REPLACE FUNCTION foh._matched(name text, included jsonb, labels jsonb, match jsonb, OUT condition text, OUT tests jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    conditions text[] := '{}';
    asked record;
    known jsonb;
    made record;
BEGIN
    IF jsonb_typeof(match) <> 'object' THEN
        RAISE EXCEPTION 'foh: match is %, it must be a JSON object: {"column": value}', match USING ERRCODE = 'invalid_parameter_value';
    END IF;
    labels := nullif(labels, 'null');
    tests := '{}';
    FOR asked IN SELECT e.key AS about, e.value FROM jsonb_each(match) e LOOP
        known := included -> asked.about;
        IF known IS NOT NULL THEN
            made := foh._match_column(name, known, asked.value);
            tests := tests || made.test;
        ELSIF asked.about = 'labels' AND labels IS NOT NULL THEN
            made := foh._match_labels(name, labels, asked.value);
            tests := tests || made.test;
        ELSE
            RAISE EXCEPTION 'foh: match names %, which index % does not include', quote_ident(asked.about), quote_literal(name) USING ERRCODE = 'undefined_column',
                HINT = concat(CASE WHEN included = '{}' THEN 'It includes no columns'
                                   ELSE 'It includes ' || (SELECT string_agg(quote_ident(c.key), ', ' ORDER BY (c.value ->> 'at')::int) FROM jsonb_each(included) c) END,
                              CASE WHEN labels IS NOT NULL THEN ', and has labels' END,
                              format('. foh.alter_index(%L, include => ...) changes that; other columns can be asked for with filter.', name));
        END IF;
        conditions := conditions || made.condition;
    END LOOP;
    condition := coalesce(nullif(array_to_string(conditions, ' AND '), ''), 'true');
END
$function$;
