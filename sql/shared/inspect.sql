-- What an index must know of a table before it is created or refreshed, and which tables cannot have one.

-- Why a table cannot have an index: its triggers would not see every write, or it may lose rows unseen. Null where it can.
CREATE OR REPLACE FUNCTION foh._refusal(relation oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN c.relkind = 'f' THEN 'is a foreign table: its rows are written elsewhere, unseen by triggers'
        WHEN c.relkind = 'v' THEN 'is a view: name the table behind it'
        WHEN c.relkind = 'm' THEN 'is a materialized view: a REFRESH fires no triggers'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'is not a table'
        WHEN c.relispartition THEN format('is a partition: create the index on %s, the table it belongs to', foh._qualified(pg_partition_root(c.oid)))
        WHEN c.relpersistence = 't' THEN 'is temporary: an index would outlive it'
        WHEN c.relpersistence = 'u' THEN 'is unlogged: after a crash it is empty and the index is not; ALTER TABLE ... SET LOGGED first'
        WHEN EXISTS (SELECT FROM foh._partitions(c.oid) t JOIN pg_class p ON p.oid = t.oid WHERE p.relpersistence = 'u') THEN
            'has a partition that is unlogged: after a crash it is empty and the index is not; ALTER TABLE ... SET LOGGED first'
        WHEN c.relnamespace IN ('foh'::regnamespace, 'pg_catalog'::regnamespace) THEN 'belongs to the system'
        WHEN c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN
            'takes part in table inheritance, where triggers see only a part of the writes; use a partitioned table'
        ELSE foh._citus_refusal(c.oid)
    END
    FROM pg_class c WHERE c.oid = relation
$function$;

-- Refuses tables on which triggers would not see every write, or with which foh's owner may not do what an index needs.
CREATE OR REPLACE FUNCTION foh._inspect_table(relation oid) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ours constant name := foh._owner();
    c pg_class;
    refusal text;
    lacking text;
BEGIN
    SELECT * INTO c FROM pg_class WHERE oid = relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: there is no table with oid %', relation USING ERRCODE = 'undefined_table';
    END IF;
    refusal := foh._refusal(c.oid);
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'foh: % %', foh._qualified(c.oid), refusal USING ERRCODE = 'wrong_object_type';
    END IF;
    PERFORM foh._refuse_owner(relation);
    lacking := concat_ws('; ',
        CASE WHEN NOT has_schema_privilege(ours, (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'vector'), 'USAGE')
             THEN format('GRANT USAGE ON SCHEMA %s TO %I', foh._vector_schema(), ours) END,
        CASE WHEN NOT has_schema_privilege(ours, c.relnamespace, 'USAGE') THEN format('GRANT USAGE ON SCHEMA %s TO %I', c.relnamespace::regnamespace, ours) END,
        CASE WHEN NOT (has_table_privilege(ours, c.oid, 'SELECT') AND has_table_privilege(ours, c.oid, 'TRIGGER'))
             THEN format('GRANT SELECT, TRIGGER ON %s TO %I', foh._qualified(relation), ours) END);
    IF lacking <> '' THEN
        RAISE EXCEPTION 'foh: role %, which schema foh belongs to, lacks rights that an index on % needs', quote_ident(ours), foh._qualified(relation)
            USING ERRCODE = 'insufficient_privilege', HINT = lacking || ';';
    END IF;
    IF foh._hides_rows(c) THEN
        RAISE EXCEPTION 'foh: row-level security of % applies to %, as whom an index reads all rows', foh._qualified(relation), quote_ident(ours)
            USING ERRCODE = 'wrong_object_type',
                  HINT = CASE WHEN c.relforcerowsecurity THEN format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY; and let the application write as another role.', foh._qualified(relation))
                              ELSE format('ALTER TABLE %s OWNER TO %I;', foh._qualified(relation), ours) END;
    END IF;
END
$function$;

-- A column of a table, or an error that lists those it has.
CREATE OR REPLACE FUNCTION foh._attribute(relation oid, column_name name, argument text) RETURNS pg_catalog.pg_attribute
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    a pg_attribute;
BEGIN
    SELECT * INTO a FROM pg_attribute x
    WHERE x.attrelid = relation AND x.attname = column_name AND x.attnum > 0 AND NOT x.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: % has no column % (argument %)', foh._qualified(relation), coalesce(quote_ident(column_name), 'NULL'), argument
            USING ERRCODE = 'undefined_column',
                  HINT = 'Its columns: ' || (SELECT string_agg(quote_ident(x.attname), ', ' ORDER BY x.attnum) FROM pg_attribute x
                                             WHERE x.attrelid = relation AND x.attnum > 0 AND NOT x.attisdropped) || '.';
    END IF;
    IF a.attgenerated = 'v' THEN
        RAISE EXCEPTION 'foh: column % of % is a virtual generated column, which triggers do not see (argument %)',
            quote_ident(a.attname), foh._qualified(relation), argument USING ERRCODE = 'feature_not_supported', HINT = 'Make it STORED.';
    END IF;
    RETURN a;
END
$function$;

-- vector, halfvec, real[] or double precision[]; null for any other type. No SET search_path, as in foh._columns.
CREATE OR REPLACE FUNCTION foh._embedding_type(type oid) RETURNS text
LANGUAGE sql STABLE
AS $function$
    SELECT CASE
        WHEN type IN ('real[]'::regtype, 'double precision[]'::regtype) THEN format_type(type, NULL)
        ELSE (SELECT t.typname::text FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace
              WHERE t.oid = type AND e.extname = 'vector' AND t.typname IN ('vector', 'halfvec'))
    END
$function$;

-- How labels of a type are read: one (a label), many (an array of labels), json (an array of strings); null where the type cannot hold
-- labels. A domain is what it is a domain over.
CREATE OR REPLACE FUNCTION foh._label_kind(type oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN e.typtype = 'e' OR e.oid IN ('text'::regtype, 'varchar'::regtype, 'char'::regtype, '"char"'::regtype, 'name'::regtype, 'boolean'::regtype,
                                          'uuid'::regtype, 'smallint'::regtype, 'int'::regtype, 'bigint'::regtype)
        THEN CASE WHEN b.many THEN 'many' ELSE 'one' END
        WHEN e.oid = 'jsonb'::regtype AND NOT b.many THEN 'json'
    END
    FROM (SELECT t.oid, t.typelem, t.typcategory = 'A' AND t.typelem <> 0 AS many FROM pg_type t WHERE t.oid = foh._base_type(type)) b
    JOIN pg_type e ON e.oid = foh._base_type(CASE WHEN b.many THEN b.typelem ELSE b.oid END)
$function$;

-- Reads from the catalog what an index needs to know of its source, or says why the table cannot have one.
CREATE OR REPLACE FUNCTION foh._inspect_source(i foh.index) RETURNS foh.index
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    c pg_class;
    a pg_attribute;
BEGIN
    PERFORM foh._inspect_table(i.source);
    SELECT * INTO c FROM pg_class WHERE oid = i.source;
    i.source_oid := c.oid;
    i.source_name := foh._qualified(c.oid);
    i := foh._inspect_key(i);

    a := foh._attribute(i.source, i.embedding, 'embedding');
    i.embedding_attnum := a.attnum;
    i.embedding_type := foh._embedding_type(a.atttypid);
    i.embedding_typmod := a.atttypmod;
    IF i.embedding_type IS NULL THEN
        RAISE EXCEPTION 'foh: column % of % is of type %; vector, halfvec, real[] and double precision[] can be embeddings',
            quote_ident(a.attname), i.source_name, format_type(a.atttypid, a.atttypmod) USING ERRCODE = 'datatype_mismatch';
    END IF;

    i.labels_attnum := NULL;
    i.labels_type := NULL;
    IF i.labels_from IS NOT NULL THEN
        PERFORM foh._inspect_table(i.labels_from);
        i.labels_from_oid := i.labels_from;
        i.labels_from_name := foh._qualified(i.labels_from);
        i := foh._inspect_labels_key(i);
    END IF;
    IF i.labels IS NOT NULL THEN
        a := foh._attribute(coalesce(i.labels_from, i.source), i.labels, 'labels');
        i.labels_attnum := a.attnum;
        i.labels_type := format_type(a.atttypid, NULL);
        IF NOT coalesce(foh._label_kind(a.atttypid) = ANY (CASE WHEN i.labels_from IS NULL THEN '{one,many,json}'::text[] ELSE '{one}' END), false) THEN
            RAISE EXCEPTION 'foh: labels % of % are of type %; text, integers, boolean, uuid, an enum% can be labels', quote_ident(a.attname),
                foh._qualified(coalesce(i.labels_from, i.source)), format_type(a.atttypid, a.atttypmod),
                CASE WHEN i.labels_from IS NULL THEN ', arrays of these and jsonb arrays of strings' ELSE ' and domains over these' END
                USING ERRCODE = 'datatype_mismatch';
        END IF;
    END IF;
    i.row_triggers := c.relkind = 'p' OR i.options ->> 'triggers' IN ('row', 'always');
    IF c.relkind = 'p' AND i.options ->> 'triggers' = 'statement' THEN
        RAISE EXCEPTION 'foh: % is partitioned: statement triggers would miss writes to its partitions', i.source_name
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave the option triggers at auto.';
    END IF;
    RETURN i;
END
$function$;

-- The dimensions of an index: those of the column, or those given where the column leaves them open.
CREATE OR REPLACE FUNCTION foh._check_dimensions(i foh.index, given int) RETURNS int
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    declared int := CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN nullif(i.embedding_typmod, -1) END;
    found int;
BEGIN
    IF declared IS NULL AND given IS NULL THEN
        EXECUTE format(CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN 'SELECT %3$s.vector_dims(%1$I) FROM %2$s WHERE %1$I IS NOT NULL LIMIT 1'
                            ELSE 'SELECT cardinality(%1$I) FROM %2$s WHERE cardinality(%1$I) > 0 LIMIT 1' END,
                       i.embedding, i.source_name, foh._vector_schema()) INTO found;
        IF found IS NULL THEN
            RAISE EXCEPTION 'foh: column % of % does not say how many dimensions it has, and no row does', quote_ident(i.embedding), i.source_name
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Say it with the argument dimensions, on the command line --dimensions.';
        END IF;
    ELSIF given <> declared THEN
        RAISE EXCEPTION 'foh: dimensions is %, column % of % has %', given, quote_ident(i.embedding), i.source_name, declared
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave out the argument dimensions.';
    END IF;
    IF coalesce(declared, given, found) NOT BETWEEN 1 AND 16000 THEN
        RAISE EXCEPTION 'foh: % dimensions; between 1 and 16000 can be indexed', coalesce(declared, given, found) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce(declared, given, found);
END
$function$;
