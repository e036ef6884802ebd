-- What the placeholders of the templates in sql/index/ stand for.

-- What the templates' placeholders stand for in one index: quoted names, and the expressions its types ask for.
-- An expression names what it is computed from, and the template that has it must have something of that name:
--   s                    a row of the source: to_vector, vector_once, labels_read, labels_of; and in changed and moved beside o, the row before
--   NEW, OLD             the rows of a trigger: row_changed
--   g                    the row of the quantizer: query_looks (with vector, the query), row_geometry and row_looks (with $1, a row),
--                        checked_geometry (with v.x)
--   b                    a row with its code and signature: row_marks
--   m                    the model, with m.lean and m.reach once these are chosen; recall, probes and shortlist, what a search was
--                        asked for: reach_chosen, probes_for_share, shortlist_chosen
--   e.key                an entry whose row is wanted: source_of_key
--   o.seq                a later entry of the stream: later
--   s.x, $1              a row and the query, in statements that Citus sends to the nodes, where functions of an index are
--                        not known: node_distance
-- Those about the key: see foh._key_names.
CREATE OR REPLACE FUNCTION foh._names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
-- Names are compared as they were recorded.
SET quote_all_identifiers = off
AS $function$
DECLARE
    v text := foh._vector_schema();
    raw text := 's.' || foh._quoted(i.embedding);
    label text := foh._quoted(i.labels);
    -- Vectors of a cosine index are noted at length one: half the bytes, no overflow, and no NaN at the origin.
    unit text := CASE i.distance WHEN 'cosine' THEN v || '.l2_normalize' ELSE '' END;
    turned constant int := foh._turned_numbers(i.dimensions, i.distance);
    -- The length above which the embedding of a row is far: squares and sums of such numbers do not fit a real. As LONGEST in foh_pg/geometry.py.
    longest constant text := '1e18::pg_catalog.float8';
    -- A vector as it is turned into bits, as foh_pg/geometry.py computes it. Single precision could not hold sums over the
    -- longest ones: of a query as long as that the direction counts, rows as long as that are far, and are not compared.
    -- For inner products the number %3$s is put to its end: it makes all rows equally long, and is 0 in a query, so that those with the
    -- greatest product are the nearest.
    compared constant text := CASE i.distance WHEN 'cosine' THEN '%1$s.l2_normalize(%2$s)'
        WHEN 'l2' THEN 'CASE WHEN %1$s.vector_norm(%2$s) OPERATOR(pg_catalog.<=) ' || longest || ' THEN %2$s ELSE %1$s.l2_normalize(%2$s) END'
        ELSE '%1$s.l2_normalize(' || CASE WHEN turned > i.dimensions THEN '%2$s' ELSE format('%%1$s.subvector(%%2$s, 1, %s)', turned - 1) END
             || ' OPERATOR(%1$s.||) %3$s::%1$s.vector)' END;
    missing constant text := 'ARRAY[pg_catalog.sqrt(greatest(g.reach OPERATOR(pg_catalog.*) g.reach OPERATOR(pg_catalog.-) '
        '(%1$s.vector_norm(%2$s) OPERATOR(pg_catalog.*) %1$s.vector_norm(%2$s)), 0::pg_catalog.float8))]';
    signature_bits constant int := CASE WHEN i.labels IS NULL THEN 0 ELSE 64 END;
    mark_bits constant int := signature_bits + i.bits;
    padded constant int := foh._padded_numbers(turned);
    -- Thresholds of each turned number, and how many numbers have thresholds.
    copies constant int := greatest(2, i.geometry / padded);
    numbers constant int := i.geometry / copies;
    quantized constant text := '%2$s(%3$s, g.signs::%1$s.vector, g.threshold, %4$s)';
    -- The cosine distance from the origin is NaN, which LEAST takes for larger than any number.
    -- All operators written as OPERATOR(...) have one precedence, from left to right: hence the outer parentheses.
    distance text := '(' || CASE i.distance
        WHEN 'cosine' THEN 'least(%2$s OPERATOR(%1$s.<=>) %3$s, 2::pg_catalog.float8))'
        WHEN 'l2' THEN '%2$s OPERATOR(%1$s.<->) %3$s)'
        ELSE '%2$s OPERATOR(%1$s.<#>) %3$s)' END;
    keys constant jsonb := foh._key_names(i);
    probes_chosen constant text := format('coalesce(probes, m.reach_probes[m.reach], %s, CASE WHEN m.lean > 0::float8 THEN m.probes ELSE m.nearest_probes END, m.probes, %s)',
                                          coalesce(i.options ->> 'probes', 'NULL'), foh._ranking() ->> 'probes_default');
    -- The first step of the table of what probes and shortlist reach that finds more than nine in ten of the nearest rows; null where none does.
    nine_in_ten constant text := 'm.%s[width_bucket(0.91::float8, m.reach_recall) + 1]';
    lists_for_share constant text := '0.85::float8 * power(share, -0.42::float8)';
    probes_shared constant text := format('coalesce(m.reach_probes[m.reach], %s, CASE WHEN m.lean > 0::float8 THEN m.probes ELSE least(m.nearest_probes, %s) END, m.probes, %s)',
                                          coalesce(i.options ->> 'probes', 'NULL'), format(nine_in_ten, 'reach_probes'), foh._ranking() ->> 'probes_default');
    to_vector text;
    -- The labels of a row s; and the same for a writer.
    labels_read text;
    labels_of text;
    -- Whether the embedding or the labels of a row are others than before; and whether included columns are.
    moved text;
    included_changed text;
    objects jsonb;
    quantize text;
BEGIN
    to_vector := CASE i.embedding_type
        WHEN 'vector' THEN raw
        WHEN 'halfvec' THEN format('%s::%s.vector', raw, v)
        -- A cast of an array fails on NULL, NaN, infinity and what a real cannot hold: such a row is not indexed.
        ELSE format('CASE WHEN pg_catalog.array_ndims(%1$s) OPERATOR(pg_catalog.=) 1 AND pg_catalog.cardinality(%1$s) OPERATOR(pg_catalog.=) %2$s '
                    'AND NOT EXISTS (SELECT FROM pg_catalog.unnest(%1$s) u WHERE u IS NULL OR NOT pg_catalog.abs(u) OPERATOR(pg_catalog.<) 3.4e38::pg_catalog.float8) '
                    'THEN %1$s::%3$s.vector END', raw, i.dimensions, v)
    END;
    IF i.embedding_type IN ('vector', 'halfvec') AND i.embedding_typmod = -1 THEN
        to_vector := format('CASE WHEN %s.vector_dims(%s) OPERATOR(pg_catalog.=) %s THEN %s END', v, raw, i.dimensions, to_vector);
    END IF;
    moved := format('(%%1$s.%1$s IS NULL) <> (%%2$s.%1$s IS NULL) OR NOT %%1$s.%1$s OPERATOR(%2$s.=) %%2$s.%1$s',
                    replace(foh._quoted(i.embedding), '%', '%%'),
                    CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN v ELSE 'pg_catalog' END);
    IF current_setting('server_version_num')::int >= 170000 THEN
        -- The same TOAST pointer is the same value: no need to fetch both.
        moved := format('coalesce(pg_column_toast_chunk_id(%%1$s.%1$s) <> pg_column_toast_chunk_id(%%2$s.%1$s), true) AND (%2$s)',
                        replace(foh._quoted(i.embedding), '%', '%%'), moved);
    END IF;
    IF i.labels IS NULL THEN
        labels_read := 'NULL::text[]';
    ELSIF i.labels_from IS NOT NULL THEN
        labels_read := format('ARRAY(SELECT nullif(t.%s::text, '''') FROM %s t WHERE %s)', label, i.labels_from_name, keys ->> 'label_is_s');
        -- Under SERIALIZABLE this lookup could abort the writer: the labels wait for the update.
        labels_of := format('CASE WHEN current_setting(''transaction_isolation'') <> ''serializable'' THEN %s END', labels_read);
    ELSE
        -- An empty text is no label.
        labels_read := format(CASE coalesce((SELECT foh._label_kind(a.atttypid) FROM pg_attribute a WHERE a.attrelid = i.source AND a.attname = i.labels AND NOT a.attisdropped),
                                          CASE WHEN i.labels_type LIKE '%[]' THEN 'many' END)
            WHEN 'many' THEN 'array_replace(s.%1$s::text[], '''', NULL)'
            WHEN 'json' THEN $$CASE jsonb_typeof(s.%1$s) WHEN 'string' THEN ARRAY[nullif(s.%1$s #>> '{}', '')] WHEN 'array' THEN
                             ARRAY(SELECT nullif(e.value #>> '{}', '') FROM jsonb_array_elements(s.%1$s) e WHERE jsonb_typeof(e.value) = 'string') END$$
            ELSE 'ARRAY[nullif(s.%1$s::text, '''')]' END, label);
        moved := moved || format(' OR %%1$s.%1$s IS DISTINCT FROM %%2$s.%1$s', replace(label, '%', '%%'));
    END IF;
    SELECT coalesce(string_agg(format('%%1$s.%1$s IS DISTINCT FROM %%2$s.%1$s', replace(foh._quoted(c ->> 'name'), '%', '%%')), ' OR '), 'false') INTO included_changed
    FROM jsonb_array_elements(i.included) c;
    SELECT jsonb_object_agg(o.suffix, format('foh.%I', o.object)) INTO objects FROM foh._object_names(i.name) o;
    objects := objects || jsonb_build_object(
        -- The tables that the functions of the index read, for foh._open.
        'tables_text', concat_ws(', ', quote_literal(i.source_name), quote_literal(i.labels_from_name)),
        -- Whether who searches may read all columns of them.
        'tables_readable', concat_ws(' AND ', format('pg_catalog.has_table_privilege(%L, ''SELECT'')', i.source_name),
                                     CASE WHEN i.labels_from IS NOT NULL THEN format('pg_catalog.has_table_privilege(%L, ''SELECT'')', i.labels_from_name) END),
        -- Whether one of them is not there under its name.
        'table_missing', '(' || concat_ws(' OR ', format('pg_catalog.to_regclass(%L) IS NULL', i.source_name),
                                          CASE WHEN i.labels_from IS NOT NULL THEN format('pg_catalog.to_regclass(%L) IS NULL', i.labels_from_name) END) || ')');
    quantize := objects ->> 'quantize';
    RETURN objects || keys || i.options || foh._ranking() || foh._citus_names(i) || foh._included_names(i) || jsonb_build_object(
        'id', i.id,
        'name', quote_literal(i.name),
        'vector', v,
        -- What foh._intact_in_plan compares.
        'recorded', format('%L, %L, %L, %L', i.source::oid, i.source_name, i.key_attnum,
                           ARRAY(SELECT concat_ws(' ', w.number, CASE WHEN w.role = 'embedding' AND w.type NOT LIKE '%[]' THEN v || '.' ELSE '' END || w.type, w.name)
                                 FROM foh._recorded(i) w WHERE w.role IN ('key', 'embedding'))),
        -- The same of all columns that the index reads in its table; of labels the length of their type counts, too.
        'recorded_columns', format('%L, %L, %L, %L', i.source::oid, i.source_name, i.key_attnum,
                                   ARRAY(SELECT concat_ws(' ', w.number, CASE WHEN w.role = 'embedding' AND w.type NOT LIKE '%[]' THEN v || '.' ELSE '' END
                                                               || CASE w.role WHEN 'labels' THEN coalesce((SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
                                                                    WHERE a.attrelid = i.source AND a.attname = w.name AND NOT a.attisdropped), w.type) ELSE w.type END, w.name)
                                         FROM foh._recorded(i) w WHERE w.number > 0 AND w.relation = i.source_oid)),
        'source', i.source_name,
        'source_oid', i.source::oid,
        'label_conditions', coalesce(foh._label_conditions(i)::text, 'null'),
        'embedding', foh._quoted(i.embedding),
        'label_column', coalesce(label, ''),
        'dimensions', i.dimensions,
        'bits', i.bits,
        'to_vector', to_vector,
        'labels_read', labels_read,
        'labels_of', coalesce(labels_of, labels_read),
        'moved', format(moved, 's', 'o'),
        'changed', format(moved || ' OR ' || included_changed, 's', 'o'),
        'row_changed', format(moved || ' OR ' || included_changed, 'NEW', 'OLD'),
        'columns_intact', foh._columns_intact(i),
        -- A vector out of TOAST is fetched again by every operator that reads it; a copy is fetched once.
        'vector_once', CASE i.embedding_type WHEN 'vector' THEN format('%s.subvector(%s, 1, %s)', v, to_vector, i.dimensions) ELSE to_vector END,
        'noted_type', format(CASE i.distance WHEN 'cosine' THEN '%s.halfvec' ELSE '%s.vector' END, v),
        'noted_operator', CASE i.distance WHEN 'l2' THEN '<->' ELSE '<#>' END,
        -- Stands before a vector in parentheses.
        'unit', unit,
        'turned_numbers', turned,
        -- Rows whose embedding is longer are far: they take no part in models and lists, and every search reads them.
        'longest', longest
    ) || jsonb_build_object(
        'geometry_bits', i.geometry,
        'half', padded / 2,
        'numbers', numbers,
        'middle', copies / 2 * numbers,
        -- The bits of a row, $1, whose numbers lie half of the thresholds higher, or lower.
        'bits_above', format('(B''%s'' || substring($1 FROM 1 FOR %s))::bit(%s)', repeat('1', copies / 2 * numbers), i.geometry - copies / 2 * numbers, i.geometry),
        'bits_below', format('(substring($1 FROM %s) || B''%s'')::bit(%s)', copies / 2 * numbers + 1, repeat('0', copies / 2 * numbers), i.geometry),
        -- Stands after a vector and fills it up with zeros.
        'padding', CASE WHEN turned = padded THEN ''
            ELSE format(' OPERATOR(%s.||) pg_catalog.array_fill(0::pg_catalog.float4, ARRAY[%s])::%1$s.vector', v, padded - turned) END,
        'row_looks', format(quantized, v, quantize, format(compared, v, '$1', format(missing, v, '$1')), 'true'),
        'row_geometry', format('(%s)[1]', format(quantized, v, quantize, format(compared, v, '$1', format(missing, v, '$1')), 'false')),
        'query_looks', format(quantized, v, quantize, format(compared, v, 'vector', quote_literal('[0]')), 'true'),
        'signature_bits', signature_bits,
        'signature_zeros', CASE WHEN signature_bits = 0 THEN 'B''''' ELSE format('B''%s''', repeat('0', 64)) END,
        'code_mask', format('B''%s%s''', repeat('0', signature_bits), repeat('1', i.bits)),
        'mark_bits', mark_bits,
        'row_marks', CASE WHEN signature_bits = 0 THEN 'b.code' ELSE format('coalesce(b.signature, B''%s'') || b.code', repeat('0', 64)) END,
        -- What a bit of the estimate adds to a score, on the scale of the exact distance.
        'bit_distance', format('%s::pg_catalog.float8', 1.0::float8 / i.geometry),
        -- The factor of the learned weights that a dial of 0 to 1 stands for: none at 0, one at a half, fifty near 1.
        'dial_factor_of', CASE WHEN i.labels IS NULL THEN '0::pg_catalog.float8' ELSE
            format('CASE WHEN %1$s OPERATOR(pg_catalog.>=) 0.98::pg_catalog.float8 THEN 50::pg_catalog.float8 '
                   'ELSE %1$s OPERATOR(pg_catalog./) (1::pg_catalog.float8 OPERATOR(pg_catalog.-) %1$s) END', format('coalesce($1, %s::pg_catalog.float8)', i.options ->> 'dial')) END,
        -- What a search chooses by its arguments, the options and the model: the place in the table of what probes and shortlist
        -- reach, probes, and rows to read.
        'reach_chosen', format('CASE WHEN coalesce(recall, %1$s) IS NOT NULL THEN least(width_bucket(coalesce(recall, %1$s), m.reach_recall) + 1, cardinality(m.reach_recall)) END',
                               coalesce(i.options ->> 'recall', 'NULL') || '::float8'),
        -- Where only a share of the rows passes a condition: so many more lists that about nine in ten of the nearest rows that pass are found.
        'lists_for_share', lists_for_share,
        'probes_for_share', format('CASE WHEN probes IS NOT NULL OR share IS NULL THEN %1$s ELSE least(%2$s::float8 * greatest(%3$s, 1::float8), 1e7::float8)::int END',
                                   probes_chosen, probes_shared, lists_for_share),
        -- So many of the nearest lists tell which share of the rows passes around the query; that of all rows counts as so many entries there.
        'share_lists', 'CASE WHEN share < 0.2::float8 THEN 8 ELSE 3 END',
        'share_counts', '5::float8',
        'shortlist_chosen', format('coalesce(shortlist, m.reach_shortlist[m.reach], %s, CASE WHEN m.lean > 0::float8 THEN m.shortlist WHEN share IS NULL THEN m.nearest_shortlist ELSE least(m.nearest_shortlist, %s) END, %s)',
                                   coalesce(i.options ->> 'shortlist', 'NULL'), format(nine_in_ten, 'reach_shortlist'), foh._ranking() ->> 'shortlist_default'),
        'most_unplaced', 100,
        'checked_geometry', format('(%s)[1]', format(quantized, v, quantize, format(compared, v, 'v.x', format(missing, v, 'v.x')), 'false')),
        'exact_distance_of', format(distance, v, '$1', '$2'),
        'node_distance', format(distance, v, 's.x', '$1'),
        -- What an exact distance is divided by to compare with an estimate from bits.
        'scale_of_scores', CASE i.distance WHEN 'cosine' THEN '1::float8' WHEN 'l2' THEN 'm.scale' ELSE 'm.scale * m.scale' END);
END
$function$;
