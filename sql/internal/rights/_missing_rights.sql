-- What a reader still lacks, outside of foh, to read the source of an index, as statements; null where nothing is missing.
CREATE OR REPLACE FUNCTION foh._missing_rights(i foh.index, role name) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(format('GRANT %s TO %I;', r.missing, role), ' ')
    FROM pg_class c CROSS JOIN LATERAL (VALUES
        (NOT has_schema_privilege(role, (parse_ident(foh._vector_schema()))[1], 'USAGE'), 'USAGE ON SCHEMA ' || foh._vector_schema()),
        (NOT has_schema_privilege(role, c.relnamespace, 'USAGE'), 'USAGE ON SCHEMA ' || c.relnamespace::regnamespace),
        (NOT (has_column_privilege(role, c.oid, i.key_attnum, 'SELECT') AND has_column_privilege(role, c.oid, i.embedding_attnum, 'SELECT')),
         -- By the names that the columns have now. A column that is gone is no reason to give a right.
         (SELECT format('SELECT (%s) ON %s', string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum = i.embedding_attnum), foh._qualified(c.oid))
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum IN (i.key_attnum, i.embedding_attnum) AND NOT a.attisdropped HAVING count(*) = 2))
    ) AS r (lacks, missing) WHERE c.oid = i.source AND r.lacks AND r.missing IS NOT NULL
$function$;
