-- The condition, over row i of foh.index, that every column the index reads is where it was, has its type, and is readable.
-- pg_attribute is read as of the transaction's snapshot, which may be hours old under REPEATABLE READ. There the system cache,
-- which is up to date, is also asked for names, and whether the table was rewritten, as a change of type does.
-- A transaction that truncates a table which another has altered since its snapshot sees two rows of the table in pg_class:
-- the condition is then false.
-- pgvector's type is compared by its present name. After ALTER EXTENSION ... SET SCHEMA, or where the schema was closed to the
-- role, the functions that the trigger calls would not be found, and the write would fail. Every call of a trigger pays for
-- this condition, so it has few lookups. Where embeddings are arrays no column has pgvector's type, and the condition asks
-- for the extension.
-- A table that has come to a role without the rights of foh's owner, or hides rows from that owner, is not read any more.
CREATE OR REPLACE FUNCTION foh._columns_intact(i foh.index) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN i.embedding_type LIKE '%[]' THEN format($$
               EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                       WHERE e.extname = 'vector' AND n.nspname = %L AND has_schema_privilege(n.oid, 'USAGE')) AND $$,
               (parse_ident(foh._vector_schema()))[1]) ELSE '' END
        || string_agg(format($$
               CASE WHEN (pg_identify_object_as_address('pg_class'::regclass, i.%1$s, 0)).object_names = %2$L::text[]
                    THEN has_schema_privilege(%3$L, 'USAGE') AND NOT row_security_active(i.%1$s::oid)
                         AND (SELECT bool_and(pg_has_role(c.relowner, current_user, 'USAGE')) FROM pg_class c WHERE c.oid = i.%1$s) ELSE false END
               AND %4$s = (SELECT count(*) FROM pg_attribute a
                           WHERE a.attrelid = i.%1$s AND a.attname = ANY (%5$L::name[]) AND (%6$s)
                             AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
                             AND (current_setting('transaction_isolation') = 'read committed'
                                  OR (pg_identify_object_as_address('pg_class'::regclass, i.%1$s, a.attnum)).object_names[3] = a.attname::text
                                     AND (SELECT CASE count(*) WHEN 1 THEN min(c.relfilenode) END FROM pg_class c WHERE c.oid = i.%1$s) = coalesce(pg_relation_filenode(i.%1$s), 0)))$$,
               t.relation, parse_ident(t.name), (parse_ident(t.name))[1], t.count, t.columns, t.conditions), ' AND ' ORDER BY t.relation DESC)
    FROM (SELECT c.relation, c.relation_name AS name, count(*), array_agg(c.name) AS columns,
                 string_agg(format('a.attname = %L AND %s%s AND (a.attnum = i.%s_attnum OR i.%s <> i.%5$s_oid)', c.name,
                                   CASE WHEN c.role = 'embedding' AND i.embedding_type NOT LIKE '%[]'
                                        THEN format('CASE format_type(a.atttypid, NULL) WHEN %L THEN has_schema_privilege(%L, ''USAGE'') ELSE false END',
                                                    c.type, (parse_ident(c.type))[1])
                                        -- The type of labels may be the application's own. Its name is compared: a type that was renamed or
                                        -- dropped must not make a write fail.
                                        WHEN c.role = 'labels' THEN format('format_type(a.atttypid, NULL) = %L', c.type)
                                        ELSE format('a.atttypid = %L::regtype', c.type) END,
                                   CASE WHEN c.role = 'embedding' THEN ' AND a.atttypmod = ' || i.embedding_typmod END, c.role, c.relation),
                            ' OR ') AS conditions
          FROM (VALUES ('key', 'source', i.source_name, i.key, i.key_type::text),
                       ('embedding', 'source', i.source_name, i.embedding,
                        CASE WHEN i.embedding_type LIKE '%[]' THEN i.embedding_type ELSE foh._vector_schema() || '.' || i.embedding_type END),
                       ('labels', CASE WHEN i.labels_from IS NULL THEN 'source' ELSE 'labels_from' END,
                        coalesce(i.labels_from_name, i.source_name), i.labels, i.labels_type),
                       ('labels_key', 'labels_from', i.labels_from_name, i.labels_key, i.key_type::text)
               ) AS c (role, relation, relation_name, name, type)
          WHERE c.name IS NOT NULL GROUP BY c.relation, c.relation_name) t
$function$;
