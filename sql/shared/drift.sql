-- Whether the tables of an index still look as they were recorded when it was created or refreshed. A description is a row for each table
-- and column that the index reads (type foh.described): foh._recorded has the one that was recorded, foh._present the one of today, and
-- foh._differences compares them. Triggers and searches, which cannot afford that, ask for the same in short: the last three functions.

-- What was recorded of the tables and columns that an index reads. Labels count without the length of their type, embeddings and included
-- columns with it, and
-- the columns of a key are never null.
-- No SET search_path here and in foh._present: all callers set one. A function with a setting of its own is not inlined, which would slow
-- searches down.
CREATE OR REPLACE FUNCTION foh._recorded(i foh.index) RETURNS SETOF foh.described
LANGUAGE sql STABLE
AS $function$
    SELECT d.at, d.role, d.relation, d.number::int2, d.name, d.type
    FROM (VALUES (1, 'source', i.source_oid, 0, i.source_name, 'table'),
                 (2, 'labels_from', i.labels_from_oid, 0, i.labels_from_name, 'table'),
                 (20, 'embedding', i.source_oid, i.embedding_attnum, i.embedding::text, i.embedding_type || coalesce('(' || nullif(i.embedding_typmod, -1) || ')', '')),
                 (30, 'labels', coalesce(i.labels_from_oid, i.source_oid), i.labels_attnum, i.labels::text, i.labels_type)
          UNION ALL
          SELECT k.at, k.role, k.relation, k.numbers[k.part], k.names[k.part]::text, format_type(i.key_types[k.part], NULL)
          FROM (SELECT 10 + n, 'key', i.source_oid, i.key_attnum, i.key, n FROM generate_series(1, cardinality(i.key)) n
                UNION ALL
                SELECT 40 + n, 'labels_key', i.labels_from_oid, i.labels_key_attnum, i.labels_key, n FROM generate_series(1, cardinality(i.labels_key)) n
               ) AS k (at, role, relation, numbers, names, part)
          UNION ALL
          SELECT 50 + (c ->> 'slot')::int, 'included', i.source_oid, (c ->> 'attnum')::int, c ->> 'name', c ->> 'declared' FROM jsonb_array_elements(i.included) c
         ) AS d (at, role, relation, number, name, type)
    WHERE d.name IS NOT NULL
$function$;

-- The same tables and columns as they are now; the name is null if one is gone. A column is followed by its number, or by its name in a
-- restored database, where the numbers may have moved.
CREATE OR REPLACE FUNCTION foh._present(i foh.index) RETURNS SETOF foh.described
LANGUAGE sql STABLE
AS $function$
    SELECT w.at, w.role, t.oid, a.attnum, CASE w.number WHEN 0 THEN foh._qualified(t.oid) ELSE a.attname::text END,
           CASE WHEN w.number = 0 THEN w.type
                WHEN w.role = 'included' THEN format_type(a.atttypid, a.atttypmod)
                WHEN w.role <> 'embedding' THEN format_type(a.atttypid, NULL) || CASE WHEN w.role = 'key' AND NOT a.attnotnull THEN ' NULL' ELSE '' END
                ELSE coalesce(foh._embedding_type(a.atttypid) || coalesce('(' || nullif(a.atttypmod, -1) || ')', ''), format_type(a.atttypid, a.atttypmod)) END
    FROM (SELECT w.*, (CASE w.relation WHEN i.labels_from_oid THEN i.labels_from ELSE i.source END)::oid AS oid FROM foh._recorded(i) w) w
    LEFT JOIN pg_class t ON t.oid = w.oid
    LEFT JOIN pg_attribute a ON w.number > 0 AND a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
         AND CASE WHEN t.oid = w.relation THEN a.attnum = w.number ELSE a.attname = w.name END
$function$;

-- What helps where an index cannot follow its table: it was made for other dimensions or for keys of another type.
CREATE OR REPLACE FUNCTION foh._other_index(name text) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('create another index on the table as it is now and build it, then run SELECT foh.drop_index(%1$L), and SELECT foh.rename_index(..., %1$L)', name)
$function$;

-- What is not as it was recorded: what happened, to which table or column, what it is now, and the statement that helps.
CREATE OR REPLACE FUNCTION foh._differences(i foh.index) RETURNS TABLE (role text, what text, was text, is_now text, cure text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
-- Names are compared as they were recorded.
SET quote_all_identifiers = off
AS $function$
    SELECT d.role, d.what, d.was, d.is_now, d.cure
    FROM (SELECT w.at, w.role, CASE WHEN w.number > 0 THEN 'a column has changed' WHEN p.name IS NULL THEN 'a table of the index was dropped' ELSE 'a table of the index was renamed' END,
               CASE w.number WHEN 0 THEN w.name ELSE format('column %I', w.name) END,
               CASE WHEN p.name IS NULL THEN 'is gone'
                    WHEN p.name = w.name THEN 'is of type ' || p.type
                    WHEN w.number = 0 THEN 'is now ' || p.name
                    ELSE format('is now named %I', p.name) END,
               CASE WHEN w.role = 'embedding' AND substring(p.type FROM '\d+') <> i.dimensions::text THEN foh._other_index(i.name)
                    WHEN w.role = 'key' AND p.type <> w.type THEN foh._other_index(i.name)
                    WHEN w.number = 0 AND p.name IS NULL THEN format('run SELECT foh.drop_index(%L)', i.name)
                    WHEN p.name IS NULL AND w.role IN ('embedding', 'labels') THEN format('run SELECT foh.refresh(%L, %s => ''...'') with the column that took its place', i.name, w.role)
                    ELSE format('run SELECT foh.refresh(%L)', i.name) END
        FROM foh._recorded(i) w JOIN foh._present(i) p ON p.at = w.at
        WHERE (p.name, p.type) IS DISTINCT FROM (w.name, w.type)
          -- Of a table that is gone, the columns are not named one by one.
          AND (w.number = 0 OR p.relation IS NOT NULL)
        UNION ALL
        SELECT 50 + (c ->> 'slot')::int, 'included', 'a column has changed', format('column %I', c ->> 'name'), 'has values under other names', format('run SELECT foh.refresh(%L)', i.name)
        FROM jsonb_array_elements(i.included) c WHERE NOT foh._values_intact(c) AND to_regtype(c ->> 'type') IS NOT NULL) AS d (at, role, what, was, is_now, cure)
    ORDER BY d.at
$function$;

-- An error if a table of an index was dropped.
CREATE OR REPLACE FUNCTION foh._refuse_dropped(i foh.index) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    dropped text;
BEGIN
    SELECT string_agg(d.was, ' and ') INTO dropped FROM foh._differences(i) d WHERE d.role IN ('source', 'labels_from') AND d.is_now = 'is gone';
    IF dropped IS NOT NULL THEN
        RAISE EXCEPTION 'foh: a table of index % was dropped: %', quote_literal(i.name), dropped
            USING ERRCODE = 'undefined_table', HINT = format('SELECT foh.drop_index(%L) removes what is left of the index.', i.name);
    END IF;
END
$function$;

-- An error where the columns of an index are no longer what its tables were made for.
CREATE OR REPLACE FUNCTION foh._check_columns(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    d int;
BEGIN
    IF new.key_types <> old.key_types THEN
        RAISE EXCEPTION 'foh: the key of % was % when index % was created and is % now', new.source_name, array_to_string(old.key_types, ', '), quote_literal(old.name),
            array_to_string(new.key_types, ', ')
            USING ERRCODE = 'datatype_mismatch', HINT = 'The index cannot follow: ' || foh._other_index(old.name) || '.';
    END IF;
    d := foh._check_dimensions(new, CASE WHEN new.embedding_typmod = -1 OR new.embedding_type LIKE '%[]' THEN old.dimensions END);
    IF d <> old.dimensions THEN
        RAISE EXCEPTION 'foh: the embedding has % dimensions now, index % was made for %', d, quote_literal(old.name), old.dimensions
            USING ERRCODE = 'datatype_mismatch', HINT = 'The index cannot follow: ' || foh._other_index(old.name) || '.';
    END IF;
END
$function$;

-- What brings an index in line with its tables.
CREATE OR REPLACE FUNCTION foh._cure(name text) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- A transaction with an old snapshot may see nothing of what has changed.
    SELECT coalesce(string_agg(DISTINCT p.cure, '; '), format('run SELECT foh.refresh(%L), which helps or says why it cannot', $1))
    FROM foh.index i CROSS JOIN LATERAL foh._problems(i) p WHERE i.name = $1
$function$;

-- foh: function _refuse_changed, called by readers
-- Reads, as foh's owner, what has changed, and says nothing of it but the cure.
CREATE OR REPLACE FUNCTION foh._refuse_changed(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RAISE EXCEPTION 'foh: the table of index % has changed since it was created or refreshed', quote_literal(name)
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('What helps: %s.', foh._cure(name));
END
$function$;

-- foh: function _refuse_if_changed, called by readers
-- Refuses where a table or column of an index is not as it was recorded; included columns count only for who asks for them.
CREATE OR REPLACE FUNCTION foh._refuse_if_changed(name text, included boolean) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF EXISTS (SELECT FROM foh.index i CROSS JOIN LATERAL foh._differences(i) d WHERE i.name = $1 AND (d.role <> 'included' OR $2)) THEN
        PERFORM foh._refuse_changed($1);
    END IF;
END
$function$;

-- foh: function _refuse_renamed, called by readers
-- Refuses a condition on an included enum that was renamed, or values of it: no plan is made again after that, so each search looks.
CREATE OR REPLACE FUNCTION foh._refuse_renamed(name text, column_name text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF EXISTS (SELECT FROM foh.index i CROSS JOIN LATERAL jsonb_array_elements(i.included) c WHERE i.name = $1 AND c ->> 'name' = $2 AND NOT foh._values_intact(c)) THEN
        PERFORM foh._refuse_changed($1);
    END IF;
END
$function$;

-- Whether the names in a search still mean the table and the columns of the index, no row lies in a table that inherits, and keys are
-- unique. The catalog is read as of the snapshot.
CREATE OR REPLACE FUNCTION foh._source_intact(i foh.index) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(to_regclass(i.source_name) = i.source, false)
           AND NOT EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent WHERE h.inhparent = i.source AND c.relkind <> 'p')
           AND (SELECT bool_and((p.name, p.type) IS NOT DISTINCT FROM (w.name, w.type))
                       AND EXISTS (SELECT FROM pg_index x WHERE x.indrelid = i.source AND x.indisunique AND x.indimmediate AND x.indpred IS NULL
                                   AND (x.indkey::int2[])[0:x.indnkeyatts - 1] <@ array_agg(p.number) FILTER (WHERE w.role = 'key') AND x.indnkeyatts = cardinality(i.key))
                FROM foh._recorded(i) w JOIN foh._present(i) p ON p.at = w.at WHERE w.role IN ('key', 'embedding'))
$function$;

-- foh: function _intact_in_plan, called by readers
-- Whether the source of an index is known to look as recorded. The answer is computed once, when a statement of a search is
-- planned, and costs the searches after that nothing. The function is IMMUTABLE for this reason alone. It is safe because
-- PostgreSQL plans the statement again after every ALTER of the table, as long as the oid of the table stands in the statement
-- as a constant and not in a variable.
-- The arguments are what was recorded when the function of the search was made; in a restored database the table has another oid.
-- True means that the source looks as recorded. False means that this is not known, and each search has to check by itself. The
-- catalog is read as of the snapshot, so a transaction that keeps one snapshot always gets false. Names, and whether the
-- table was rewritten (as a change of type does), are also asked of the system cache, which is up to date.
-- The first search of a connection waits for the answer, and what costs is to plan this expression, not to run it. So it asks for
-- less than foh._source_intact does, has no join, reads no table that is not at hand in every new connection, such as
-- pg_inherits, and says the types where PostgreSQL would try all operators of a name.
-- columns: what was recorded of each column that a search reads, as number, type and name in one text; the length of a key does not count.
CREATE OR REPLACE FUNCTION foh._intact_in_plan(source regclass, source_name text, key_numbers int2[], columns text[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_variable
BEGIN
    -- coalesce: where the table or a column is gone, the answer is null.
    RETURN coalesce(current_setting('transaction_isolation') LIKE 'read %' AND to_regclass(source_name)::oid = source::oid
           -- relhassubclass may be true for some time after the last child is gone, but is never false while there is one.
           AND (SELECT c.relfilenode = coalesce(pg_relation_filenode(source), 0::oid) AND (c.relkind = 'p' OR NOT c.relhassubclass)
                FROM pg_class c WHERE c.oid = source::oid)
           AND 0 < (SELECT count(*) FILTER (WHERE x.indisunique AND x.indimmediate AND x.indpred IS NULL
                                                  AND (x.indkey::int2[])[0:x.indnkeyatts - 1] <@ key_numbers AND x.indnkeyatts = cardinality(key_numbers))
                    FROM pg_index x WHERE x.indrelid = source::oid)
           AND cardinality(columns) = (SELECT count(*) FILTER (
                               WHERE concat_ws(' ', a.attnum, format_type(a.atttypid, CASE WHEN a.attnum <> ALL (key_numbers) THEN a.atttypmod END), a.attname) = ANY (columns)
                                 AND (a.attnotnull OR a.attnum <> ALL (key_numbers))
                                 AND (pg_identify_object_as_address('pg_class'::regclass, source, a.attnum)).object_names[3] = a.attname::text)
                    FROM pg_attribute a WHERE a.attrelid = source::oid), false);
END
$function$;

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
    FROM (SELECT c.relation, c.relation_name AS name, count(DISTINCT c.name), array_agg(c.name) AS columns,
                 string_agg(format('a.attname = %L AND %s%s AND (a.attnum = %s OR i.%s <> i.%5$s_oid)', c.name,
                                   CASE WHEN c.role = 'embedding' AND i.embedding_type NOT LIKE '%[]'
                                        THEN format('CASE format_type(a.atttypid, a.atttypmod) WHEN %L THEN has_schema_privilege(%L, ''USAGE'') ELSE false END',
                                                    foh._vector_schema() || '.' || c.type, (parse_ident(foh._vector_schema()))[1])
                                        -- The type of labels may be the application's own. Its name is compared: a type that was renamed or
                                        -- dropped must not make a write fail.
                                        WHEN c.role = 'labels' THEN format('format_type(a.atttypid, NULL) = %L', c.type)
                                        WHEN c.role = 'included' THEN format('format_type(a.atttypid, a.atttypmod) = %L', c.type)
                                        ELSE format('a.atttypid = %L::regtype', c.type) END,
                                   CASE c.role WHEN 'key' THEN ' AND a.attnotnull' END, c.number, c.relation),
                            ' OR ') AS conditions
          FROM (SELECT w.role, w.name, w.type, w.number, CASE w.relation WHEN i.labels_from_oid THEN 'labels_from' ELSE 'source' END AS relation,
                       CASE w.relation WHEN i.labels_from_oid THEN i.labels_from_name ELSE i.source_name END AS relation_name
                FROM foh._recorded(i) w WHERE w.number > 0) c
          GROUP BY c.relation, c.relation_name) t
$function$;
