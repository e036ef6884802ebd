-- Whether the tables of an index still look as they were recorded when it was created or refreshed.

-- Where each column that the index reads stands now: by attribute number, or by name in a restored database, where
-- the numbers may have moved. usable: still there, of the recorded type and under the recorded name.
-- No SET search_path: all callers set one. A function with a setting of its own is not inlined, which would slow searches down.
CREATE OR REPLACE FUNCTION foh._columns(i foh.index)
RETURNS TABLE (role text, recorded name, present name, attnum int2, type oid, typmod int, usable boolean)
LANGUAGE sql STABLE
AS $function$
    SELECT c.role, c.recorded, a.attname, a.attnum, a.atttypid, a.atttypmod,
           coalesce(a.attname = c.recorded AND CASE c.role
               WHEN 'key' THEN a.atttypid = i.key_type
               WHEN 'embedding' THEN a.atttypmod = i.embedding_typmod AND foh._embedding_type(a.atttypid) = i.embedding_type
               WHEN 'labels' THEN format_type(a.atttypid, NULL) = i.labels_type
               WHEN 'included' THEN EXISTS (SELECT FROM jsonb_array_elements(i.included) e WHERE e ->> 'name' = c.recorded AND e ->> 'declared' = format_type(a.atttypid, a.atttypmod))
               ELSE true END, false)
    FROM (VALUES ('key', i.source::oid, i.source_oid, i.key, i.key_attnum),
                 ('embedding', i.source, i.source_oid, i.embedding, i.embedding_attnum),
                 ('labels', coalesce(i.labels_from, i.source), coalesce(i.labels_from_oid, i.source_oid), i.labels, i.labels_attnum),
                 ('labels_key', i.labels_from, i.labels_from_oid, i.labels_key, i.labels_key_attnum)
          UNION ALL
          SELECT 'included', i.source, i.source_oid, (e ->> 'name')::name, (e ->> 'attnum')::int2 FROM jsonb_array_elements(i.included) e
         ) AS c (role, relation, relation_oid, recorded, attnum)
    LEFT JOIN pg_attribute a ON a.attrelid = c.relation AND NOT a.attisdropped AND a.attnum > 0
         AND CASE WHEN c.relation = c.relation_oid THEN a.attnum = c.attnum ELSE a.attname = c.recorded END
    WHERE c.recorded IS NOT NULL
$function$;

-- The present name of the key column, or null where it is gone or of another type.
CREATE OR REPLACE FUNCTION foh._key_column(index int) RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.present FROM foh.index i, foh._columns(i) c
    WHERE i.id = index AND c.role = 'key' AND c.type = i.key_type
$function$;

-- An error where the table of an index was dropped.
CREATE OR REPLACE FUNCTION foh._check_source(i foh.index) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = i.source)
       OR (i.labels_from IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class WHERE oid = i.labels_from)) THEN
        RAISE EXCEPTION 'foh: a table of index % was dropped: %', quote_literal(i.name), i.source_name || coalesce(' or ' || i.labels_from_name, '')
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
    IF new.key_type <> old.key_type THEN
        RAISE EXCEPTION 'foh: the key of % was % when index % was created and is % now', new.source_name, old.key_type, quote_literal(old.name), new.key_type
            USING ERRCODE = 'datatype_mismatch', HINT = format('Drop the index and create it again: SELECT foh.drop_index(%L).', old.name);
    END IF;
    d := foh._check_dimensions(new, CASE WHEN new.embedding_typmod = -1 OR new.embedding_type LIKE '%[]' THEN old.dimensions END);
    IF d <> old.dimensions THEN
        RAISE EXCEPTION 'foh: the embedding has % dimensions now, index % was made for %', d, quote_literal(old.name), old.dimensions
            USING ERRCODE = 'datatype_mismatch', HINT = 'Create a new index for the new embedding, then drop this one.';
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
           AND 2 = (SELECT count(*) FROM foh._columns(i) c
                    WHERE c.usable AND (c.role = 'embedding' OR c.role = 'key' AND EXISTS (
                        SELECT FROM pg_index x WHERE x.indrelid = i.source AND x.indisprimary AND x.indnkeyatts = 1 AND x.indkey[0] = c.attnum)))
$function$;

-- Whether the source of an index is known to look as recorded. The answer is computed once, when a statement of a search is
-- planned, and costs the searches after that nothing. The function is IMMUTABLE for this reason alone. It is safe because
-- PostgreSQL plans the statement anew after every ALTER of the table, as long as the oid of the table stands in the statement
-- as a constant and not in a variable.
-- The arguments are what was recorded when the function of the search was made; in a restored database the table has another oid.
-- True means that the source looks as recorded. False means that this is not known, and each search has to check by itself. The
-- catalog is read as of the snapshot, so a transaction that keeps one snapshot always gets false. Names, and whether the
-- table was rewritten (as a change of type does), are also asked of the system cache, which is up to date.
-- The first search of a connection waits for the answer, and what costs is to plan this expression, not to run it. So it asks for
-- less than foh._source_intact does, has no join, reads no table that is not at hand in every new connection, such as
-- pg_inherits, and says the types where PostgreSQL would try all operators of a name.
CREATE OR REPLACE FUNCTION foh._intact_in_plan(source regclass, source_name text, key name, key_attnum int2, key_type oid,
                                               embedding name, embedding_attnum int2, embedding_type text, embedding_typmod int)
RETURNS boolean
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
           AND 1 = (SELECT count(*) FILTER (WHERE x.indisprimary AND x.indnkeyatts = 1 AND x.indkey[0] = key_attnum)
                    FROM pg_index x WHERE x.indrelid = source::oid)
           AND 2 = (SELECT count(*) FILTER (
                               WHERE (a.attnum = key_attnum AND a.attname = key AND a.atttypid = key_type
                                      OR a.attnum = embedding_attnum AND a.attname = embedding AND a.atttypmod = embedding_typmod
                                         AND format_type(a.atttypid, NULL) = embedding_type)
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
                                        THEN format('CASE format_type(a.atttypid, NULL) WHEN %L THEN has_schema_privilege(%L, ''USAGE'') ELSE false END',
                                                    c.type, (parse_ident(c.type))[1])
                                        -- The type of labels may be the application's own. Its name is compared: a type that was renamed or
                                        -- dropped must not make a write fail.
                                        WHEN c.role = 'labels' THEN format('format_type(a.atttypid, NULL) = %L', c.type)
                                        WHEN c.role = 'included' THEN format('format_type(a.atttypid, a.atttypmod) = %L', c.type)
                                        ELSE format('a.atttypid = %L::regtype', c.type) END,
                                   CASE WHEN c.role = 'embedding' THEN ' AND a.atttypmod = ' || i.embedding_typmod END,
                                   coalesce(c.attnum, format('i.%s_attnum', c.role)), c.relation),
                            ' OR ') AS conditions
          FROM (VALUES ('key', 'source', i.source_name, i.key, i.key_type::text, NULL::text),
                       ('embedding', 'source', i.source_name, i.embedding,
                        CASE WHEN i.embedding_type LIKE '%[]' THEN i.embedding_type ELSE foh._vector_schema() || '.' || i.embedding_type END, NULL),
                       ('labels', CASE WHEN i.labels_from IS NULL THEN 'source' ELSE 'labels_from' END,
                        coalesce(i.labels_from_name, i.source_name), i.labels, i.labels_type, NULL),
                       ('labels_key', 'labels_from', i.labels_from_name, i.labels_key, i.key_type::text, NULL)
                UNION ALL
                SELECT 'included', 'source', i.source_name, (e ->> 'name')::name, e ->> 'declared', e ->> 'attnum' FROM jsonb_array_elements(i.included) e
               ) AS c (role, relation, relation_name, name, type, attnum)
          WHERE c.name IS NOT NULL GROUP BY c.relation, c.relation_name) t
$function$;

-- foh: function _refuse_changed, called by readers
CREATE OR REPLACE FUNCTION foh._refuse_changed(name text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RAISE EXCEPTION 'foh: the table of index % has changed since it was created or refreshed', quote_literal(name)
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('SELECT foh.refresh(%1$L) brings the index in line, or says why it cannot; SELECT foh.drop_index(%1$L), where the table was dropped.', name);
END
$function$;

-- The tables and functions that an index should have and has not: somebody dropped them.
CREATE OR REPLACE FUNCTION foh._missing_objects(i foh.index) RETURNS TABLE (name text, is_table boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('foh.%I', o.object), t.kind = 'table'
    FROM foh._templates(i) t JOIN foh._object_names(i.name) o ON o.suffix = t.name
    WHERE CASE t.kind WHEN 'table' THEN NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'foh'::regnamespace AND c.relname = o.object)
                      WHEN 'function' THEN NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = o.object) END
$function$;

-- What is wrong with the tables of an index: dropped, changed, or not watched by its triggers. After a colon, the statement that
-- helps, ready to be run.
CREATE OR REPLACE FUNCTION foh._check_tables(i foh.index) RETURNS TABLE (problem text, detail text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
-- Names are compared as they were recorded.
SET quote_all_identifiers = off
AS $function$
DECLARE
    r record;
    dropped boolean := false;
    refresh constant text := format('run SELECT foh.refresh(%L)', i.name);
    drop_index constant text := format('run SELECT foh.drop_index(%L)', i.name);
    distributed constant boolean := coalesce(foh._citus_kind(i.source) = 'distributed', false);
    citus constant text[] := foh._begin_local();
BEGIN
    FOR r IN SELECT t.relation::oid AS oid, t.name, t.suffix FROM (VALUES (i.source, i.source_name, 'capture'),
                    (i.labels_from, i.labels_from_name, 'capturelabels')) AS t (relation, name, suffix) WHERE t.name IS NOT NULL
    LOOP
        IF NOT EXISTS (SELECT FROM pg_class WHERE oid = r.oid) THEN
            problem := 'a table of the index was dropped: ' || drop_index;
            detail := r.name;
            RETURN NEXT;
            dropped := true;
            CONTINUE;
        END IF;
        IF foh._qualified(r.oid) <> r.name THEN
            problem := 'a table of the index was renamed: ' || refresh;
            detail := format('%s is now %s', r.name, foh._qualified(r.oid));
            RETURN NEXT;
        END IF;
        RETURN QUERY
            SELECT 'a table of the index can have none any more: undo the change, or ' || drop_index, format('%s %s', r.name, x.refusal)
            FROM (VALUES (foh._refusal(r.oid)), (CASE WHEN r.oid = i.source THEN foh._key_refusal(r.oid) END)) AS x (refusal)
            WHERE x.refusal IS NOT NULL;
        RETURN QUERY
            SELECT format('a trigger is missing or disabled: %s, then SELECT foh.repair(%L)', refresh, i.name), format('%s on %s', e.event, r.name)
            FROM unnest(ARRAY['insert', 'update', 'delete', 'truncate']) AS e (event)
            WHERE NOT EXISTS (SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
                              WHERE g.tgrelid = r.oid AND g.tgname = format('foh_%s_%s', i.name, e.event) AND g.tgenabled IN ('O', 'A')
                                AND CASE WHEN distributed THEN p.proname = (foh._node_names(i) ->> 'note_name')::name
                                         ELSE p.pronamespace = 'foh'::regnamespace AND p.proname = i.name || '_' || r.suffix END);
        RETURN QUERY
            SELECT CASE WHEN c.relforcerowsecurity THEN format('row-level security is forced on the owner, as whom the index reads: run ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', foh._qualified(c.oid))
                        ELSE format('row-level security hides rows from %I, as whom the index reads: run ALTER TABLE %s OWNER TO %1$I', foh._owner(), foh._qualified(c.oid)) END, r.name
            FROM pg_class c WHERE c.oid = r.oid AND foh._hides_rows(c);
        RETURN QUERY
            SELECT format('a table of the index belongs to a role without the rights of %I, as whom the index reads: run ALTER TABLE %s OWNER TO %1$I, or SELECT foh.drop_index(%L)',
                          foh._owner(), foh._qualified(c.oid), i.name),
                   format('%s belongs to %I', r.name, pg_get_userbyid(c.relowner))
            FROM pg_class c WHERE c.oid = r.oid AND NOT pg_has_role(c.relowner, foh._owner(), 'USAGE');
        RETURN QUERY
            SELECT format('the index may not read its table: run %s', g.command), r.name
            FROM pg_class c CROSS JOIN LATERAL (VALUES
                (has_schema_privilege(foh._owner(), c.relnamespace, 'USAGE'), format('GRANT USAGE ON SCHEMA %s TO %I', c.relnamespace::regnamespace, foh._owner())),
                (has_table_privilege(foh._owner(), c.oid, 'SELECT'), format('GRANT SELECT ON %s TO %I', foh._qualified(c.oid), foh._owner()))) AS g (may, command)
            WHERE c.oid = r.oid AND NOT g.may;
    END LOOP;
    IF dropped THEN
        PERFORM foh._end_local(citus);
        RETURN;
    END IF;
    RETURN QUERY
        SELECT 'pgvector has moved to another schema: ' || refresh, 'it is in ' || foh._vector_schema()
        FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name
          AND strpos(p.prosrc, foh._vector_schema() || '.vector_dims(') = 0;
    RETURN QUERY
        SELECT 'the index may not use the schema of pgvector: run ' || g.command, g.command
        FROM (SELECT format('GRANT USAGE ON SCHEMA %s TO %I', foh._vector_schema(), foh._owner()) AS command) g
        WHERE NOT has_schema_privilege(foh._owner(), (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'vector'), 'USAGE');
    RETURN QUERY
        SELECT 'a column has changed: ' || refresh,
               format('%s %I is %s', c.role, c.recorded, CASE WHEN c.present IS NULL THEN 'gone'
                      WHEN c.present <> c.recorded THEN format('named %I', c.present) ELSE 'of type ' || format_type(c.type, c.typmod) END)
        FROM foh._columns(i) c WHERE NOT c.usable;
    PERFORM foh._end_local(citus);
END
$function$;

-- What is wrong with an index, as foh._check_tables says it. Where even that cannot be found out, the reason is what is wrong: the
-- other indexes are looked at all the same.
CREATE OR REPLACE FUNCTION foh._problems(i foh.index) RETURNS TABLE (problem text, detail text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    dropped text;
BEGIN
    SELECT string_agg(m.name, ', ' ORDER BY m.name) INTO dropped FROM foh._missing_objects(i) m WHERE m.is_table;
    IF dropped IS NOT NULL THEN
        problem := format('tables of the index in foh were dropped: run SELECT foh.drop_index(%L), and create it again', i.name);
        detail := dropped;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT string_agg(m.name, ', ' ORDER BY m.name) INTO dropped FROM foh._missing_objects(i) m WHERE NOT m.is_table;
    IF dropped IS NOT NULL THEN
        problem := format('functions of the index were dropped: run SELECT foh.refresh(%L), then SELECT foh.repair(%L)', i.name, i.name);
        detail := dropped;
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY SELECT t.problem, t.detail FROM foh._check_tables(i) t;
EXCEPTION WHEN OTHERS THEN
    problem := format('the index cannot be looked at: run SELECT foh.refresh(%L)', i.name);
    detail := SQLERRM;
    RETURN NEXT;
END
$function$;
