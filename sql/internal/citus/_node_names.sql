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
        'inbox_name', quote_literal(ours || 'inbox'),
        'inbox_text', quote_literal(format('%I.%I', schema, ours || 'inbox')),
        'token_text', quote_literal(format('%I.%I', schema, ours || 'token')),
        'schema_text', quote_literal(schema));
END
$function$;
