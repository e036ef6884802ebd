-- Makes an index on a table and captures every write from here on. Rows that are there already are placed by
-- foh-pg build; until then a search reads the table itself.
CREATE OR REPLACE FUNCTION foh.create_index(
    name text,
    source regclass,
    embedding name,
    labels name DEFAULT NULL,
    labels_from regclass DEFAULT NULL,
    labels_key name DEFAULT NULL,
    bits int DEFAULT 64,
    dimensions int DEFAULT NULL,
    distance text DEFAULT 'cosine',
    centers int DEFAULT NULL,
    homes int DEFAULT NULL,
    neighbors int DEFAULT NULL,
    probes int DEFAULT NULL,
    label_weight float8 DEFAULT NULL,
    options jsonb DEFAULT '{}'
) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Settings of the session that change how text is read, names are quoted or numbers are written must not get into what is rendered here.
SET standard_conforming_strings = on
SET quote_all_identifiers = off
SET extra_float_digits = 1
SET lock_timeout = '10s'
AS $function$
<<body>>
DECLARE
    i foh.index;
    -- A transaction whose snapshot is older than the lock cannot tell whether the table is empty.
    empty boolean := current_setting('transaction_isolation') = 'read committed';
    citus text[];
    published text;
BEGIN
    PERFORM foh._require_owner();
    PERFORM foh._check_name(name);
    IF source IS NULL THEN
        RAISE EXCEPTION 'foh: source is NULL: name the table' USING ERRCODE = 'null_value_not_allowed';
    ELSIF (labels_from IS NULL) <> (labels_key IS NULL) OR (labels_from IS NOT NULL AND labels IS NULL) THEN
        RAISE EXCEPTION 'foh: labels in a table of their own need three arguments: labels_from (the table), labels_key (its column with the key) and labels (its column with the label)'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    i.name := name;
    citus := foh._begin_local();
    i.source := foh._citus_source(source);
    i.embedding := embedding;
    i.labels := labels;
    i.labels_from := foh._citus_source(labels_from);
    i.labels_key := labels_key;
    i.bits := bits;
    i.distance := distance;
    -- The options that are used most have arguments of their own.
    i.options := foh._check_options(coalesce(options, '{}') || jsonb_strip_nulls(jsonb_build_object(
        'centers', centers, 'homes', homes, 'neighbors', neighbors, 'probes', probes, 'label_weight', label_weight)));
    PERFORM foh._check_arguments(i);
    i := foh._inspect_source(i);
    i.dimensions := foh._check_dimensions(i, dimensions);
    i.geometry := foh._geometry_bits(foh._turned_numbers(i.dimensions, i.distance), (i.options ->> 'geometry')::int);

    INSERT INTO foh.index (name, source, source_oid, source_name, key, key_attnum, key_type, embedding, embedding_attnum,
                           embedding_type, embedding_typmod, labels, labels_attnum, labels_type, labels_from, labels_from_oid,
                           labels_from_name, labels_key, labels_key_attnum, dimensions, geometry, bits, distance, options,
                           row_triggers, several, status)
    VALUES (i.name, i.source, i.source_oid, i.source_name, i.key, i.key_attnum, i.key_type, i.embedding, i.embedding_attnum,
            i.embedding_type, i.embedding_typmod, i.labels, i.labels_attnum, i.labels_type, i.labels_from, i.labels_from_oid,
            i.labels_from_name, i.labels_key, i.labels_key_attnum, i.dimensions, i.geometry, i.bits, i.distance, i.options,
            i.row_triggers, (i.options ->> 'homes')::int > 1 OR (i.options ->> 'neighbors')::int > 0, 'building')
    RETURNING * INTO i;
    INSERT INTO foh.updating (index) VALUES (i.id);
    PERFORM foh._make_tables(i);
    PERFORM foh._make_functions(i);
    PERFORM foh._attach(i);
    UPDATE foh.updating u SET partitions = foh._leaves(i) WHERE u.index = i.id;
    -- Making the triggers has locked the table: every row that a new snapshot does not see now will pass through them.
    IF body.empty THEN
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM foh.%I(wanted => 1))', i.name || '_rows') INTO empty;
    END IF;
    IF body.empty THEN
        UPDATE foh.index x SET status = 'ready' WHERE x.id = i.id;
    ELSE
        RAISE NOTICE 'foh: % has rows; place them with: foh-pg build %', i.source_name, quote_literal(name);
    END IF;
    IF (i.options ->> 'homes')::int = 0 THEN
        RAISE NOTICE 'foh: with homes 0 only the % rows nearest to a center are in its list, and a row may be in none', i.options ->> 'neighbors'
            USING HINT = 'A search still returns k rows, and reads the table where the lists have fewer; homes 1 puts each row into a list.';
    END IF;
    -- Such a publication takes our tables along.
    published := (SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname) FROM pg_publication p WHERE p.puballtables);
    IF published IS NOT NULL THEN
        RAISE WARNING 'foh: publication % is FOR ALL TABLES, and so publishes the tables of index %', published, quote_literal(name)
            USING HINT = 'Publish the schemas of the application instead: CREATE PUBLICATION ... FOR TABLES IN SCHEMA ...; see docs/operations.md.';
    END IF;
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;
