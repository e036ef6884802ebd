-- Reads from the catalog what an index needs to know of its source, or says why the table cannot have one.
CREATE OR REPLACE FUNCTION foh._inspect_source(i foh.index) RETURNS foh.index
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    c pg_class;
    a pg_attribute;
    refusal text;
BEGIN
    PERFORM foh._inspect_table(i.source);
    SELECT * INTO c FROM pg_class WHERE oid = i.source;
    i.source_oid := c.oid;
    i.source_name := foh._qualified(c.oid);

    PERFORM foh._check_rights(i.source);

    refusal := foh._key_refusal(i.source);
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'foh: table % %', i.source_name, refusal USING ERRCODE = 'invalid_table_definition';
    END IF;
    SELECT p.* INTO a FROM pg_attribute p JOIN pg_index x ON x.indrelid = p.attrelid AND x.indkey[0] = p.attnum
    WHERE p.attrelid = c.oid AND x.indisprimary;
    IF a.atttypid NOT IN ('int'::regtype, 'bigint'::regtype, 'uuid'::regtype, 'text'::regtype, 'varchar'::regtype) THEN
        RAISE EXCEPTION 'foh: the primary key % of % is of type %; int, bigint, uuid, text and varchar can be keys',
            quote_ident(a.attname), i.source_name, format_type(a.atttypid, a.atttypmod) USING ERRCODE = 'datatype_mismatch';
    END IF;
    IF NOT coalesce((SELECT collisdeterministic FROM pg_collation WHERE oid = a.attcollation), true) THEN
        RAISE EXCEPTION 'foh: the primary key % of % has a nondeterministic collation: keys that differ may be equal',
            quote_ident(a.attname), i.source_name USING ERRCODE = 'datatype_mismatch';
    END IF;
    i.key := a.attname;
    i.key_attnum := a.attnum;
    i.key_type := a.atttypid;

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
        PERFORM foh._check_rights(i.labels_from);
        i.labels_from_oid := i.labels_from;
        i.labels_from_name := foh._qualified(i.labels_from);
        a := foh._attribute(i.labels_from, i.labels_key, 'labels_key');
        i.labels_key_attnum := a.attnum;
        IF a.atttypid <> i.key_type THEN
            RAISE EXCEPTION 'foh: labels_key % of % is of type %, the key it refers to is of type %', quote_ident(a.attname),
                i.labels_from_name, format_type(a.atttypid, NULL), i.key_type USING ERRCODE = 'datatype_mismatch';
        END IF;
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
