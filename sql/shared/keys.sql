-- The key of an index: which columns it has, and how templates write it.

-- Whether the lists of an index hold rows of a composite type in place of the key column itself: where the key has several columns, or one
-- of a type that is printed as the settings of a session say.
CREATE OR REPLACE FUNCTION foh._has_record_key(i foh.index) RETURNS boolean
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT cardinality(i.key_types) > 1 OR i.key_types[1] NOT IN ('int'::regtype, 'bigint'::regtype, 'uuid'::regtype, 'text'::regtype, 'varchar'::regtype)
$function$;

-- The type of a key in the tables of an index.
CREATE OR REPLACE FUNCTION foh._key_type(i foh.index) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN foh._has_record_key(i) THEN format('foh.%I', i.name || '_key') ELSE foh._written_type(i.key_types[1]) END
$function$;

-- The columns that an argument names: a column as it is called, or several as an array.
CREATE OR REPLACE FUNCTION foh._column_names(given text, argument text) RETURNS name[]
LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN CASE WHEN starts_with(given, '{') THEN given::name[] ELSE ARRAY[given::name] END;
EXCEPTION WHEN invalid_text_representation THEN
    RAISE EXCEPTION 'foh: % is %: give a column, or several as %', argument, quote_literal(given), quote_literal('{tenant_id,id}')
        USING ERRCODE = 'invalid_parameter_value';
END
$function$;

-- Why these columns, or the primary key where there are none, cannot be the key of an index; null where they can.
CREATE OR REPLACE FUNCTION foh._key_refusal(relation oid, columns name[]) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN u.attnums IS NULL AND columns IS NULL THEN
            'has no primary key: add one, its value is what a search returns, or name the columns of a unique index with the argument key'
        WHEN u.attnums IS NULL THEN
            format('has no primary key and no unique index over %s alone, NOT NULL, without a condition: %s', c.names,
                   coalesce(format('ALTER TABLE %s %s, and ', foh._qualified(relation), c.changes), '') || format('CREATE UNIQUE INDEX ON %s (%s)', foh._qualified(relation), c.names))
        -- Two transactions could hold one key at once, and the later entry in the stream need not belong to the later row.
        WHEN NOT u.at_once THEN format('has a %s that is DEFERRABLE: an index needs one that is checked at once', CASE WHEN u.is_primary THEN 'primary key' ELSE 'key' END)
        WHEN cardinality(u.attnums) > 4 THEN
            format('has a key of %s columns: the key of an index has four at most; name the columns of another unique index with the argument key', cardinality(u.attnums))
    END
    FROM (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(columns, a.attname)) AS names,
                 string_agg(format('ALTER COLUMN %I SET NOT NULL', a.attname), ', ') FILTER (WHERE NOT a.attnotnull) AS changes
          FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = ANY (columns)) c
    LEFT JOIN LATERAL (SELECT * FROM foh._key_index(relation, columns)) u ON true
$function$;

-- The unique index over these columns, in any order, or that of the primary key where there are none. By its columns any row can be told from all
-- others: it is over the whole table, over columns that are never null, and best checked at once.
CREATE OR REPLACE FUNCTION foh._key_index(relation oid, columns name[]) RETURNS TABLE (attnums int2[], is_primary boolean, at_once boolean)
LANGUAGE sql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT u.attnums, x.indisprimary, x.indimmediate
    FROM pg_index x CROSS JOIN LATERAL (SELECT (x.indkey::int2[])[0:x.indnkeyatts - 1] AS attnums) u
    WHERE x.indrelid = relation AND x.indisunique AND (x.indisprimary OR x.indisvalid AND x.indpred IS NULL AND 0 <> ALL (u.attnums)
          AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation AND a.attnum = ANY (u.attnums) AND NOT a.attnotnull))
      AND CASE WHEN columns IS NULL THEN x.indisprimary
               ELSE ARRAY(SELECT n FROM unnest(u.attnums) n ORDER BY n) = ARRAY(SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = ANY (columns)
                                                                              AND a.attnum > 0 ORDER BY a.attnum) END
    ORDER BY x.indimmediate DESC, x.indisprimary DESC LIMIT 1
$function$;

-- The index with its key: the columns, in the order of the unique index that they have, so that this index serves where rows are read in
-- the order of their keys. An index that exists keeps its order.
CREATE OR REPLACE FUNCTION foh._inspect_key(i foh.index) RETURNS foh.index
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    refusal text;
    wrong record;
BEGIN
    PERFORM foh._attribute(i.source, n, 'key') FROM unnest(i.key) n;
    refusal := foh._key_refusal(i.source, i.key);
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'foh: table % %', i.source_name, refusal USING ERRCODE = 'invalid_table_definition';
    END IF;
    SELECT array_agg(k.attname ORDER BY k.at), array_agg(k.attnum ORDER BY k.at), array_agg(k.atttypid ORDER BY k.at)::regtype[] INTO i.key, i.key_attnum, i.key_types
    FROM (SELECT a.attname, a.attnum, a.atttypid, CASE WHEN i.key_types IS NULL THEN k.at ELSE array_position(i.key, a.attname) END AS at
          FROM foh._key_index(i.source, i.key) u CROSS JOIN LATERAL unnest(u.attnums) WITH ORDINALITY AS k (attnum, at)
          JOIN pg_attribute a ON a.attrelid = i.source AND a.attnum = k.attnum) k;
    SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, NOT coalesce(c.collisdeterministic, true) AS vague INTO wrong
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = i.source AND a.attnum = ANY (i.key_attnum)
      AND (NOT c.collisdeterministic OR a.atttypid <> ALL (ARRAY['smallint', 'int', 'bigint', 'uuid', 'text', 'varchar', 'date', 'timestamp', 'timestamptz']::regtype[]))
    ORDER BY array_position(i.key_attnum, a.attnum) LIMIT 1;
    IF wrong.vague THEN
        RAISE EXCEPTION 'foh: the key % of % has a nondeterministic collation: keys that differ may be equal',
            quote_ident(wrong.attname), i.source_name USING ERRCODE = 'datatype_mismatch';
    ELSIF wrong.type IS NOT NULL THEN
        RAISE EXCEPTION 'foh: the key % of % is of type %; smallint, int, bigint, uuid, text, varchar, date, timestamp and timestamptz can be keys',
            quote_ident(wrong.attname), i.source_name, wrong.type USING ERRCODE = 'datatype_mismatch';
    END IF;
    RETURN i;
END
$function$;

-- The index with the columns of the table of labels that refer to its key: as many, of the same types, in the same order.
CREATE OR REPLACE FUNCTION foh._inspect_labels_key(i foh.index) RETURNS foh.index
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    a pg_attribute;
BEGIN
    IF cardinality(i.labels_key) <> cardinality(i.key) THEN
        RAISE EXCEPTION 'foh: labels_key is %, the key it refers to has the columns %', i.labels_key, i.key
            USING ERRCODE = 'invalid_parameter_value', HINT = format('Name the columns of %s that refer to these, in their order: %L.', i.labels_from_name, i.key);
    END IF;
    i.labels_key_attnum := '{}';
    FOR at IN 1 .. cardinality(i.key) LOOP
        a := foh._attribute(i.labels_from, i.labels_key[at], 'labels_key');
        i.labels_key_attnum := i.labels_key_attnum || a.attnum;
        IF a.atttypid <> i.key_types[at] THEN
            RAISE EXCEPTION 'foh: labels_key % of % is of type %, the key it refers to is of type %', quote_ident(a.attname),
                i.labels_from_name, format_type(a.atttypid, NULL), i.key_types[at] USING ERRCODE = 'datatype_mismatch';
        END IF;
    END LOOP;
    RETURN i;
END
$function$;

-- The key of a row r by the present names of its columns; null where one is gone, of another type, or may be null.
CREATE OR REPLACE FUNCTION foh._present_key(index int) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN foh._has_record_key(i) THEN format('ROW(%s)::%s', k.columns, foh._key_type(i)) ELSE k.columns END
    FROM foh.index i CROSS JOIN LATERAL (SELECT string_agg('r.' || quote_ident(p.name), ', ' ORDER BY p.at) AS columns, bool_and(p.type IS NOT DISTINCT FROM w.type) AS same
                                         FROM foh._recorded(i) w JOIN foh._present(i) p ON p.at = w.at WHERE w.role = 'key') k
    WHERE i.id = index AND k.same
$function$;

-- What templates write for the key beside patterns (see foh._pattern). s is a row of the source; e.key is a key in a table of ours. In a statement about
-- both, the columns are compared one by one: so the application's index serves, and PostgreSQL leaves out partitions. A statement about a
-- distributed table must not name the composite type, which the nodes lack; there a key is the columns k1, k2 and so on.
--   s_is_e                     the condition that s is the row of e.key
--   source_of_key              after FROM: the row s of e.key
--   source_of_matching         after FROM: the rows s of an array named keys, by a lookup for each where the table is partitioned
--   source_of_near             the same in a search, whose search_path is its caller's: of near.keys, with key and embedding of each row
--   label_is_s                 the condition that t, of the table of labels, belongs to s
--   s_is_among                 the condition that s is the row of one of the keys whose columns are in the arrays $1, $2 ...
--   s_is_after_parts           the condition that s stands after the key whose columns are given behind these arrays
CREATE OR REPLACE FUNCTION foh._key_names(i foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
AS $function$
DECLARE
    as_row constant boolean := foh._has_record_key(i);
    partitioned constant boolean := coalesce((SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = i.source), false);
    has_text constant boolean := EXISTS (SELECT FROM unnest(i.key_types) t WHERE t IN ('text'::regtype, 'varchar'::regtype));
    names jsonb;
    s_is_e text;
BEGIN
    SELECT jsonb_build_object(
        'has_record_key', as_row,
        'key_type', foh._key_type(i),
        'key_columns', jsonb_agg(jsonb_build_object('number', k.at, 'name', foh._quoted(k.name), 'type', foh._written_type(k.type), 'labels_key', foh._quoted(k.labels_key), 'collation', k.collation) ORDER BY k.at),
        'given_as_k', string_agg(format('pg_catalog.unnest($%s) AS k%s', k.at + 5, k.at), ', ' ORDER BY k.at),
        's_is_among', CASE WHEN count(*) = 1 THEN min(format('s.%I = ANY ($1%s)', k.name, k.collation))
                           ELSE format('(%s) IN (SELECT * FROM unnest(%s))', string_agg(format('s.%I', k.name), ', ' ORDER BY k.at), string_agg(format('$%s', k.at), ', ' ORDER BY k.at)) END,
        's_is_after_parts', format('(%s) > (%s)', string_agg(format('s.%I', k.name), ', ' ORDER BY k.at),
                                   string_agg(format('$%s%s', cardinality(i.key) + k.at, k.collation), ', ' ORDER BY k.at)),
        'label_is_s', string_agg('t.' || quote_ident(k.labels_key) || format(' = s.%I%s', k.name, foh._collate(i.labels_from, k.labels_key)), ' AND ' ORDER BY k.at))
    INTO names
    FROM (SELECT k.*, foh._collate(i.source, k.name) AS collation FROM unnest(i.key, i.key_types, i.labels_key) WITH ORDINALITY AS k (name, type, labels_key, at)) k;
    s_is_e := foh._pattern('each', 's.@ OPERATOR(pg_catalog.=) <e.key>^ AND', names);
    RETURN names || jsonb_build_object(
        's_is_e', s_is_e,
        'source_of_key', format('%s s WHERE %s', i.source_name, s_is_e),
        -- One scan for all keys is cheaper than a lookup for each, but would go through every partition.
        'source_of_near', CASE WHEN as_row OR partitioned
            THEN format('(SELECT pg_catalog.unnest(near.keys) AS key) e CROSS JOIN LATERAL (SELECT %s, s.%I FROM %s s WHERE %s OFFSET 0) s WHERE true',
                        foh._pattern('each', 's.@', names), i.embedding, i.source_name, s_is_e)
            ELSE format('%s s WHERE %s', i.source_name, foh._pattern('each', 's.@ OPERATOR(pg_catalog.=) ANY (near.keys^)', names)) END,
        'source_of_matching', CASE WHEN as_row OR partitioned
            THEN format('(SELECT unnest(keys) AS key) e CROSS JOIN LATERAL (SELECT s.* FROM %s s WHERE %s OFFSET 0) s WHERE true', i.source_name,
                        foh._pattern('each', 's.@ = <e.key>^ AND', names))
            ELSE format('%s s WHERE %s', i.source_name, foh._pattern('each', 's.@ = ANY (keys^)', names)) END,
        'our_collate', CASE WHEN has_text AND NOT as_row THEN ' COLLATE "default"' ELSE '' END,
        -- A digest of the key, as Keys.shares computes it in Python from the same bytes. A database in SQL_ASCII may hold bytes that are not valid UTF8.
        'key_digest', CASE WHEN as_row THEN format('encode(sha256(record_send(ROW(%s))), ''hex'')', foh._pattern('each', 's.@', names))
                           ELSE format('encode(sha256(convert_to(s.%I::text, %L)), ''hex'')', i.key[1], CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END) END,
        -- Where the key has the name of a column of ours, that column gets another one.
        'distance_name', CASE WHEN 'distance' = ANY (i.key) THEN 'foh_distance' ELSE 'distance' END,
        'score_name', CASE WHEN 'score' = ANY (i.key) THEN 'foh_score' ELSE 'score' END,
        'item_key', CASE WHEN as_row AND has_text THEN 'EXCLUDE USING hash (key WITH OPERATOR(pg_catalog.=))' ELSE 'PRIMARY KEY (key)' END,
        'stream_key', CASE WHEN as_row AND has_text THEN 'hash (key)' WHEN has_text THEN 'btree (key)' ELSE 'btree (key, seq)' END,
        -- The newest entry first of those that say where a key is. Bounds in place of an equality: PostgreSQL then reads the index on the key from its end, and
        -- not that on seq.
        'newest_of_key', CASE WHEN has_text THEN format('t.key = $1%s AND t.op <> ''l'' ORDER BY t.seq + 0 DESC', CASE WHEN NOT as_row THEN ' COLLATE "default"' END)
                              ELSE 't.key >= $1 AND t.key <= $1 AND t.op <> ''l'' ORDER BY t.key DESC, t.seq DESC' END,
        -- Where the index on the key has no seq, PostgreSQL is kept from looking through all entries that are newer.
        'later', CASE WHEN has_text THEN '(o.seq + 0)' ELSE 'o.seq' END);
END
$function$;
