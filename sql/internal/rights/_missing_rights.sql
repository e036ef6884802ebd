-- What a role still lacks, outside of foh, to read or write the source of an index; null where nothing is missing.
CREATE OR REPLACE FUNCTION foh._missing_rights(i foh.index, role name, kind text) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(r.missing, '; ')
    FROM (VALUES
        (kind = 'reader' AND NOT has_schema_privilege(role, (parse_ident(foh._vector_schema()))[1], 'USAGE'),
         'USAGE ON SCHEMA ' || foh._vector_schema()),
        (NOT has_schema_privilege(role, (parse_ident(i.source_name))[1], 'USAGE'), 'USAGE ON SCHEMA ' || quote_ident((parse_ident(i.source_name))[1])),
        (kind = 'reader' AND NOT (has_column_privilege(role, i.source::oid, i.key_attnum, 'SELECT')
                                  AND has_column_privilege(role, i.source::oid, i.embedding_attnum, 'SELECT')),
         format('SELECT (%I, %I) ON %s', i.key, i.embedding, i.source_name)),
        (kind = 'writer' AND NOT (has_any_column_privilege(role, i.source::oid, 'INSERT, UPDATE') OR has_table_privilege(role, i.source::oid, 'DELETE')),
         'INSERT, UPDATE or DELETE ON ' || i.source_name)
    ) AS r (lacks, missing) WHERE r.lacks
$function$;
