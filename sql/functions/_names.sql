-- What the templates' placeholders stand for in one index: quoted names, and the expressions its types ask for.
CREATE OR REPLACE FUNCTION foh._names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    v text := foh._vector_schema();
    raw text := 's.' || quote_ident(i.embedding);
    label text := quote_ident(i.labels);
    to_vector text;
    labels_of text;
    changed text;
    objects jsonb;
BEGIN
    to_vector := CASE i.embedding_type
        WHEN 'vector' THEN raw
        WHEN 'halfvec' THEN format('%s::%s.vector', raw, v)
        -- A cast of an array fails on NULL, NaN, infinity and what a real cannot hold: such a row is not indexed.
        ELSE format('CASE WHEN array_ndims(%1$s) = 1 AND cardinality(%1$s) = %2$s AND NOT EXISTS (SELECT FROM unnest(%1$s) u '
                    'WHERE u IS NULL OR NOT abs(u) < 3.4e38) THEN %1$s::%3$s.vector END', raw, i.dimensions, v)
    END;
    IF i.embedding_type IN ('vector', 'halfvec') AND i.embedding_typmod = -1 THEN
        to_vector := format('CASE WHEN %s.vector_dims(%s) = %s THEN %s END', v, raw, i.dimensions, to_vector);
    END IF;
    changed := format('(n.%1$s IS NULL) <> (o.%1$s IS NULL) OR NOT n.%1$s OPERATOR(%2$s.=) o.%1$s', quote_ident(i.embedding),
                      CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN v ELSE 'pg_catalog' END);
    IF i.labels IS NULL THEN
        labels_of := 'NULL::text[]';
    ELSIF i.labels_from IS NOT NULL THEN
        labels_of := format('ARRAY(SELECT t.%s::text FROM %s t WHERE t.%I = s.%I)', label, i.labels_from_name, i.labels_key, i.key);
    ELSE
        labels_of := CASE WHEN i.labels_type LIKE '%[]' THEN format('s.%s::text[]', label) ELSE format('ARRAY[s.%s::text]', label) END;
        changed := changed || format(' OR n.%1$s IS DISTINCT FROM o.%1$s', label);
    END IF;
    SELECT jsonb_object_agg(suffix, format('foh.%I', i.name || '_' || suffix)) INTO objects
    FROM unnest(foh._suffixes()) suffix;
    RETURN objects || jsonb_build_object(
        'id', i.id,
        'name', quote_literal(i.name),
        'stream_text', quote_literal(format('foh.%I', i.name || '_stream')),
        'vector', v,
        'source', i.source_name,
        'key', quote_ident(i.key),
        'key_type', i.key_type::text,
        'embedding', quote_ident(i.embedding),
        'labels', coalesce(label, ''),
        'labels_from', coalesce(i.labels_from_name, ''),
        'labels_key', coalesce(quote_ident(i.labels_key), ''),
        'dimensions', i.dimensions,
        'bits', i.bits,
        'zeros', format('B''%s''', repeat('0', i.bits)),
        'to_vector', to_vector,
        'labels_of', labels_of,
        'changed', changed,
        -- Centers of a cosine index are kept at length one: half the bytes, no overflow, and no NaN at the origin.
        'center_type', format(CASE i.distance WHEN 'cosine' THEN '%s.halfvec(%s)' ELSE '%s.vector(%s)' END, v, i.dimensions),
        'to_center', format(CASE i.distance WHEN 'cosine' THEN '%1$s.l2_normalize(x)::%1$s.halfvec' ELSE 'x' END, v),
        'center_distance', format(CASE i.distance
            WHEN 'cosine' THEN '(1 + (c.embedding OPERATOR(%s.<#>) r.u))'
            WHEN 'l2' THEN '(c.embedding OPERATOR(%s.<->) r.u) / r.scale'
            ELSE '(c.embedding OPERATOR(%s.<#>) r.u) / (r.scale * r.scale)' END, v),
        'seed', i.options ->> 'seed',
        'blend', i.options ->> 'blend',
        'homes', i.options ->> 'homes',
        'neighbors', i.options ->> 'neighbors',
        'max_stale', i.options ->> 'max_stale',
        'label_weight', i.options ->> 'label_weight',
        'probes', i.options ->> 'probes',
        'shortlist', i.options ->> 'shortlist',
        'exact_rows', i.options ->> 'exact_rows',
        'stream_center_idx', quote_ident(i.name || '_stream_center_idx'),
        'stream_key_idx', quote_ident(i.name || '_stream_key_idx'),
        'stream_marker_idx', quote_ident(i.name || '_stream_marker_idx'));
END
$function$;
