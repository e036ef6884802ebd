-- What the templates' placeholders stand for in one index: quoted names, and the expressions its types ask for.
CREATE OR REPLACE FUNCTION foh._names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    v text := foh._vector_schema();
    raw text := 's.' || quote_ident(i.embedding);
    label text := quote_ident(i.labels);
    -- Distances by schema, what is compared with, and scale. Centers of a cosine index are kept at length one: half
    -- the bytes, no overflow, and no NaN at the origin.
    unit text := CASE i.distance WHEN 'cosine' THEN '%1$s.l2_normalize(%2$s)::%1$s.halfvec' ELSE '%2$s' END;
    center_distance text := CASE i.distance
        WHEN 'cosine' THEN '(1 + (c.embedding OPERATOR(%1$s.<#>) %2$s))'
        WHEN 'l2' THEN '(c.embedding OPERATOR(%1$s.<->) %2$s) / %3$s'
        ELSE '(c.embedding OPERATOR(%1$s.<#>) %2$s) / (%3$s * %3$s)' END;
    -- The cosine distance from the origin is NaN, which LEAST takes for larger than any number.
    -- All of OPERATOR(...) bind alike, from left to right: hence the outer parentheses.
    score text := '(%4$s::pg_catalog.float8 OPERATOR(pg_catalog.*) ' || CASE i.distance
        WHEN 'cosine' THEN 'least(s.x OPERATOR(%1$s.<=>) %2$s, 2::pg_catalog.float8))'
        WHEN 'l2' THEN '(s.x OPERATOR(%1$s.<->) %2$s) OPERATOR(pg_catalog./) %3$s)'
        ELSE '(s.x OPERATOR(%1$s.<#>) %2$s) OPERATOR(pg_catalog./) %3$s OPERATOR(pg_catalog./) %3$s)' END;
    several boolean := i.several;
    to_vector text;
    labels_of text;
    changed text;
    objects jsonb;
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
    changed := format('(%%1$s.%1$s IS NULL) <> (%%2$s.%1$s IS NULL) OR NOT %%1$s.%1$s OPERATOR(%2$s.=) %%2$s.%1$s',
                      replace(quote_ident(i.embedding), '%', '%%'),
                      CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN v ELSE 'pg_catalog' END);
    IF current_setting('server_version_num')::int >= 170000 THEN
        -- The same TOAST pointer is the same value: no need to fetch both.
        changed := format('coalesce(pg_column_toast_chunk_id(%%1$s.%1$s) <> pg_column_toast_chunk_id(%%2$s.%1$s), true) AND (%2$s)',
                          replace(quote_ident(i.embedding), '%', '%%'), changed);
    END IF;
    IF i.labels IS NULL THEN
        labels_of := 'NULL::text[]';
    ELSIF i.labels_from IS NOT NULL THEN
        labels_of := format('ARRAY(SELECT t.%s::text FROM %s t WHERE t.%I = s.%I%s)', label, i.labels_from_name, i.labels_key, i.key,
                            foh._collate(i.labels_from, i.labels_key));
    ELSE
        labels_of := CASE WHEN i.labels_type LIKE '%[]' THEN format('s.%s::text[]', label) ELSE format('ARRAY[s.%s::text]', label) END;
        changed := changed || format(' OR %%1$s.%1$s IS DISTINCT FROM %%2$s.%1$s', replace(label, '%', '%%'));
    END IF;
    SELECT jsonb_object_agg(suffix, format('foh.%I', i.name || '_' || suffix)) INTO objects
    FROM unnest(foh._suffixes()) suffix;
    -- The role that the source is read as; and a digest of the key, as Keys.shares computes it in Python from the same bytes.
    objects := objects || jsonb_build_object(
        'owner', quote_literal(foh._source_owner(i)),
        'key_digest', format('md5(s.%I::text)', i.key));
    RETURN objects || i.options || jsonb_build_object(
        'id', i.id,
        'name', quote_literal(i.name),
        'stream_text', quote_literal(format('foh.%I', i.name || '_stream')),
        'vector', v,
        'source', i.source_name,
        'source_oid', i.source::oid,
        'key', quote_ident(i.key),
        'key_type', i.key_type::text,
        'key_collate', foh._collate(i.source, i.key),
        'our_collate', CASE WHEN i.key_type IN ('text'::regtype, 'varchar'::regtype) THEN ' COLLATE "default"' ELSE '' END,
        'embedding', quote_ident(i.embedding),
        'labels', coalesce(label, ''),
        'labels_from', coalesce(i.labels_from_name, ''),
        'labels_key', coalesce(quote_ident(i.labels_key), ''),
        'dimensions', i.dimensions,
        'bits', i.bits,
        'zeros', format('B''%s''', repeat('0', i.bits)),
        'to_vector', to_vector,
        'labels_of', labels_of,
        'changed', format(changed, 'n', 'o'),
        'row_changed', format(changed, 'NEW', 'OLD'),
        'columns_intact', foh._columns_intact(i),
        -- What a search must be sure of: that the names in it still mean the table and the columns of the index.
        'source_intact', format('coalesce(to_regclass(%L) = i.source::oid::regclass, false) AND 2 = (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.source '
                                'AND (a.attname = %L AND a.atttypid = %L::regtype AND (a.attnum = i.key_attnum OR i.source <> i.source_oid) '
                                'OR a.attname = %L AND a.atttypid = %L::regtype AND a.atttypmod = %s AND (a.attnum = i.embedding_attnum OR i.source <> i.source_oid)))',
                                i.source_name, i.key, i.key_type::text, i.embedding,
                                CASE WHEN i.embedding_type LIKE '%[]' THEN i.embedding_type ELSE v || '.' || i.embedding_type END, i.embedding_typmod),
        -- A vector out of TOAST is fetched again by every operator that reads it; a copy is fetched once.
        'vector_once', CASE i.embedding_type WHEN 'vector' THEN format('%s.subvector(%s, 1, %s)', v, to_vector, i.dimensions) ELSE to_vector END,
        'center_type', format(CASE i.distance WHEN 'cosine' THEN '%s.halfvec(%s)' ELSE '%s.vector(%s)' END, v, i.dimensions),
        'to_center', format(unit, v, 'x'),
        'center_distance', format(center_distance, v, 'r.u', 'r.scale'),
        -- Our columns make way for a key of the same name.
        'distance_name', CASE i.key WHEN 'distance' THEN 'hamming' ELSE 'distance' END,
        'score_name', CASE i.key WHEN 'score' THEN 'foh_score' ELSE 'score' END,
        'query_to_center', format(unit, v, 'vector'),
        'query_type', format(CASE i.distance WHEN 'cosine' THEN '%s.halfvec' ELSE '%s.vector' END, v),
        'query_center_distance', format(center_distance, v, '$2', '$3'),
        'explain_to_center', format(unit, v, 'query'),
        'hamming_score', format('(e.distance::pg_catalog.float8 OPERATOR(pg_catalog./) %s::pg_catalog.float8)', i.bits),
        'hamming_score_t', format('(t.distance::pg_catalog.float8 OPERATOR(pg_catalog./) %s::pg_catalog.float8)', i.bits),
        'score', format(score, v, 'query', 'near.scale', i.options ->> 'blend'),
        'filtered_score', format(score, v, '$1', '$5::pg_catalog.float8', i.options ->> 'blend'),
        -- Of the table itself, where there are no codes to blend with: also right where blend is 0.
        'exact_score', format(score, v, '$1', '$5::pg_catalog.float8', 1),
        -- With several homes a key comes from several lists.
        'distinct_open', CASE WHEN several THEN 'SELECT DISTINCT ON (m.key) m.key, m.distance FROM (' ELSE '' END,
        'distinct_close', CASE WHEN several THEN ') m ORDER BY m.key, m.distance' ELSE '' END,
        'entries_order', CASE WHEN several THEN ' ORDER BY e.distance' ELSE '' END,
        'unfolded', CASE WHEN several THEN 'cardinality($2) * $3' ELSE '$3' END,
        -- An entry of an index takes a third of a page at the most. A key of any length may not fit together with its code.
        'center_included', CASE WHEN i.dimensions * CASE i.distance WHEN 'cosine' THEN 2 ELSE 4 END + i.bits / 8 <= 2600 THEN ' INCLUDE (center, embedding)' ELSE '' END,
        'stream_included', CASE WHEN i.key_type IN ('int'::regtype, 'bigint'::regtype, 'uuid'::regtype) THEN ' INCLUDE (seq, key, op, code)' ELSE '' END,
        -- How many versions back the centers that went are known.
        'gone_versions', 64,
        'stream_center_idx', quote_ident(i.name || '_stream_center_idx'),
        'stream_key_idx', quote_ident(i.name || '_stream_key_idx'),
        'stream_known_idx', quote_ident(i.name || '_stream_known_idx'),
        'center_code_idx', quote_ident(i.name || '_center_code_idx'));
END
$function$;
