-- What the placeholders of templates stand for that concern distributed tables of Citus; see foh._names.

-- The names of what an index on a distributed table has on every node, in the schema of the table.
CREATE OR REPLACE FUNCTION foh._node_names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    schema constant text := (parse_ident(i.source_name))[1];
    ours constant text := 'foh_' || i.name || '_';
BEGIN
    RETURN jsonb_build_object(
        'note_name', ours || 'note',
        'inbox', format('%I.%I', schema, ours || 'inbox'),
        'token', format('%I.%I', schema, ours || 'token'),
        'note', format('%I.%I', schema, ours || 'note'),
        'waiting', format('%I.%I', schema, ours || 'waiting'),
        'read', format('%I.%I', schema, ours || 'read'),
        -- The name of a shard of the inbox up to its number, with the quote still open.
        'inbox_prefix', quote_literal(quote_ident(schema) || '."' || replace(ours || 'inbox', '"', '""') || '_'));
END
$function$;

-- What the placeholders of sql/index/citus_*.sql stand for, and those by which the other templates name a table that may be distributed.
CREATE OR REPLACE FUNCTION foh._citus_names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    schema constant text := (parse_ident(i.source_name))[1];
    base constant text := (parse_ident(i.source_name))[2];
    hidden boolean := false;
    -- A clause for functions that look a table up in pg_class: Citus hides shards there, and some indexes follow one.
    shows_shards jsonb;
    -- The number of the distribution column in the key, and its type.
    home constant int := coalesce(array_position(i.key, foh._citus_column(i.source)), 1);
    home_type constant regtype := i.key_types[home];
    -- The included columns: as the stream has them, as an entry of the inbox has none of them, as the table has them; and the place of the
    -- distribution column.
    columns record;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT relation_is_a_known_shard($1)' INTO hidden USING i.source;
    END IF;
    shows_shards := jsonb_build_object('shows_shards', CASE WHEN hidden THEN E'\nSET citus.override_table_visibility = off' ELSE '' END);
    IF foh._citus_kind(i.source) IS DISTINCT FROM 'distributed' THEN
        RETURN shows_shards || jsonb_build_object(
            'distributed', false,
            'stream_and_inbox', format('foh.%I', i.name || '_stream'),
            'source_rows_or_table', i.source_name);
    END IF;
    SELECT coalesce(string_agg(format(', e.included_%s', c.value ->> 'slot'), '' ORDER BY c.at), '') AS of_stream,
           coalesce(string_agg(format(', NULL::%s', c.value ->> 'kept'), '' ORDER BY c.at), '') AS of_inbox,
           coalesce(array_agg(concat_ws(' ', c.value ->> 'name', c.value ->> 'declared')), '{}') AS present,
           min(c.at) FILTER (WHERE c.value ->> 'name' = i.key[home]) AS home_at
    INTO columns FROM jsonb_array_elements(i.included) WITH ORDINALITY AS c (value, at);
    RETURN shows_shards || foh._node_names(i) || jsonb_build_object(
        'distributed', true,
        -- Keys that wait count as entries without bits, newer than all others.
        'stream_and_inbox', format('(SELECT e.seq, e.key, e.op, e.version, e.center, e.geometry%s FROM foh.%I e UNION ALL '
                                   'SELECT 9223372036854775807, w.key, ''u'', 0, 0, NULL%s FROM (SELECT foh.%I() AS key) w)',
                                   columns.of_stream, i.name || '_stream', columns.of_inbox, i.name || '_inboxkeys'),
        'source_rows_or_table', format('foh.%I()', i.name || '_sourcerows'),
        'source_of_key', format('foh.%I(e.key) s', i.name || '_sourcerows'),
        -- As inbox_prefix, of the table.
        'source_prefix', quote_literal(quote_ident(schema) || '."' || replace(base, '"', '""') || '_'),
        -- The name under which a session on a node prepares its statement. A different statement gets a different name.
        'plan', 'foh_' || left(encode(sha256(textsend(concat_ws(' ', i.id, i.source_name, i.key, i.key_types, i.embedding, i.embedding_type, i.distance, foh._vector_schema()))), 'hex'), 32),
        -- The distribution column, for patterns and as a text.
        'home_number', home,
        'home_column', quote_literal(i.key[home]),
        'key_recorded', quote_literal((SELECT array_agg(format('%s %s', k.name, k.type)) FROM unnest(i.key, i.key_types) AS k (name, type))),
        -- The nodes and the coordinator must write dates in a form that the others read, whatever their settings say.
        'iso_dates', CASE WHEN i.key_types && ARRAY['date', 'timestamp', 'timestamptz']::regtype[] THEN E'\nSET datestyle = ISO' ELSE '' END,
        'embedding_text', quote_literal(i.embedding),
        'embedding_type_text', quote_literal(CASE WHEN i.embedding_type LIKE '%[]' THEN i.embedding_type ELSE foh._vector_schema() || '.' || i.embedding_type END),
        'embedding_typmod', i.embedding_typmod,
        -- The distance of what was noted, by the index's metric. Cosine: the vectors that were noted have length one, and reach is a product.
        'noted_distance', CASE i.distance WHEN 'cosine' THEN '1 + reach' ELSE 'reach' END,
        'labels_text', coalesce(quote_literal(i.labels), 'NULL'),
        'included_recorded', quote_literal(columns.present),
        -- The values that a condition asks the distribution column for, out of its tests (see foh._matched): their shards alone are asked. Null
        -- where it asks for none.
        'homes_asked', CASE WHEN columns.home_at IS NULL THEN 'NULL' ELSE format('(tests OPERATOR(pg_catalog.->>) ''%s among'')::%s[]', columns.home_at, foh._written_type(home_type)) END,
        -- A text as long as a key can be would not fit an index with another column beside it.
        'inbox_identity', CASE WHEN i.key_types && ARRAY['text', 'varchar']::regtype[] THEN 'REPLICA IDENTITY FULL'
                               ELSE format('ADD PRIMARY KEY (%s, entry)', (SELECT string_agg('k' || at, ', ' ORDER BY at) FROM generate_series(1, cardinality(i.key)) at)) END,
        -- Some key; and another value of the distribution column for every number.
        'key_zero', (SELECT string_agg(CASE WHEN k.type = 'uuid'::regtype THEN '''00000000-0000-0000-0000-000000000000'''
                                            WHEN k.type IN ('date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype) THEN '''2000-01-01''' ELSE '''0''' END || '::' || k.type, ', ' ORDER BY k.at)
                     FROM unnest(i.key_types) WITH ORDINALITY AS k (type, at)),
        'home_numbered', CASE WHEN home_type = 'uuid'::regtype THEN 'lpad(to_hex(number), 32, ''0'')::uuid'
                              WHEN home_type IN ('date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype) THEN format('(''2000-01-01''::date + number)::%s', home_type)
                              ELSE 'number::' || home_type::text END);
END
$function$;
