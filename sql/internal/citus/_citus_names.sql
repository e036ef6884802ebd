-- What the placeholders of sql/index/citus stand for, and those by which the other templates name a table that may be distributed.
CREATE OR REPLACE FUNCTION foh._citus_names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    schema constant text := (parse_ident(i.source_name))[1];
    base constant text := (parse_ident(i.source_name))[2];
BEGIN
    IF foh._citus_kind(i.source) IS DISTINCT FROM 'distributed' THEN
        RETURN jsonb_build_object(
            'distributed', false,
            'stream_and_inbox', format('foh.%I', i.name || '_stream'),
            'source_rows_or_table', i.source_name,
            'source_of_key', format('%s s WHERE s.%I = c.key', i.source_name, i.key));
    END IF;
    RETURN foh._node_names(i) || jsonb_build_object(
        'distributed', true,
        -- Keys that wait count as entries without bits, newer than all others.
        'stream_and_inbox', format('(SELECT e.seq, e.key, e.op, e.version, e.center, e.geometry FROM foh.%I e UNION ALL '
                                   'SELECT 9223372036854775807, w.key, ''u'', 0, 0, NULL FROM foh.%I() AS w (key))', i.name || '_stream', i.name || '_inboxkeys'),
        'source_rows_or_table', format('foh.%I()', i.name || '_sourcerows'),
        'source_of_key', format('foh.%I(ARRAY[c.key]) s', i.name || '_sourcerows'),
        -- The name of a shard up to its number, with the quote still open.
        'source_prefix', quote_literal(quote_ident(schema) || '."' || replace(base, '"', '""') || '_'),
        'inbox_prefix', quote_literal(quote_ident(schema) || '."' || replace('foh_' || i.name || '_inbox', '"', '""') || '_'),
        'source_text', quote_literal(i.source_name),
        -- The name under which a session on a node prepares its statement. A different statement gets a different name.
        'plan', 'foh_' || left(encode(sha256(textsend(concat_ws(' ', i.id, i.source_name, i.key, i.embedding, i.embedding_type, i.distance, foh._vector_schema()))), 'hex'), 32),
        'key_text', quote_literal(i.key),
        'key_type_text', quote_literal(i.key_type::text),
        'embedding_text', quote_literal(i.embedding),
        'embedding_type_text', quote_literal(CASE WHEN i.embedding_type LIKE '%[]' THEN i.embedding_type ELSE foh._vector_schema() || '.' || i.embedding_type END),
        'embedding_typmod', i.embedding_typmod,
        -- The distance of what was noted, by the index's metric. Cosine: the vectors that were noted have length one, and reach is a product.
        'noted_distance', CASE i.distance WHEN 'cosine' THEN '1 + reach' ELSE 'reach' END,
        'labels_text', coalesce(quote_literal(i.labels), 'NULL'),
        'columns_expected', CASE WHEN i.labels IS NULL THEN 3 ELSE 7 END,
        -- A text as long as a key can be would not fit an index with another column beside it.
        'inbox_identity', CASE WHEN i.key_type IN ('text'::regtype, 'varchar'::regtype) THEN 'REPLICA IDENTITY FULL' ELSE 'ADD PRIMARY KEY (key, entry)' END,
        -- key_zero: some key. key_numbered: another key for every number.
        'key_zero', CASE i.key_type::text WHEN 'uuid' THEN '''00000000-0000-0000-0000-000000000000''::uuid' WHEN 'text' THEN '''0''::text'
                                          WHEN 'character varying' THEN '''0''::varchar' ELSE '0::' || i.key_type::text END,
        'key_numbered', CASE i.key_type::text WHEN 'uuid' THEN 'lpad(to_hex(number), 32, ''0'')::uuid' WHEN 'text' THEN 'number::text'
                                              WHEN 'character varying' THEN 'number::varchar' ELSE 'number::' || i.key_type::text END);
END
$function$;
