-- Creates, alters, refreshes and drops an index.

-- Makes an index on a table and captures every write from here on. Rows that are there already are placed by
-- foh-pg build; until then a search reads the table itself.
CREATE OR REPLACE FUNCTION foh.create_index(
    name text,
    source regclass,
    embedding name,
    labels name DEFAULT NULL,
    labels_from regclass DEFAULT NULL,
    labels_key text DEFAULT NULL,
    key text DEFAULT NULL,
    bits int DEFAULT 64,
    dimensions int DEFAULT NULL,
    distance text DEFAULT 'cosine',
    options jsonb DEFAULT '{}',
    include name[] DEFAULT '{}'
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
    -- An index outlives its table, and gives way to another one of its name.
    PERFORM foh.drop_index(x.name) FROM foh.index x
    WHERE x.name = create_index.name AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = x.source);
    PERFORM foh._check_arguments(name, bits, distance);
    IF source IS NULL THEN
        RAISE EXCEPTION 'foh: source is NULL: name the table' USING ERRCODE = 'null_value_not_allowed';
    ELSIF (labels_from IS NULL) <> (labels_key IS NULL) OR (labels_from IS NOT NULL AND labels IS NULL) THEN
        RAISE EXCEPTION 'foh: labels that are in another table need three arguments: labels_from (that table), labels_key (its column or columns with the key) and labels (its column with the label)'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    i.name := name;
    citus := foh._begin_local();
    i.source := foh._citus_source(source);
    i.embedding := embedding;
    i.labels := labels;
    i.labels_from := foh._citus_source(labels_from);
    i.labels_key := foh._column_names(labels_key, 'labels_key');
    i.key := foh._column_names(key, 'key');
    i.bits := bits;
    i.distance := distance;
    i.options := foh._check_options(coalesce(options, '{}'));
    i := foh._inspect_source(i);
    i.included := foh._inspect_included(i, include, NULL);
    i.dimensions := foh._check_dimensions(i, dimensions);
    i.geometry := foh._geometry_bits(foh._turned_numbers(i.dimensions, i.distance), (i.options ->> 'geometry')::int);

    INSERT INTO foh.index (name, source, source_oid, source_name, key, key_attnum, key_types, embedding, embedding_attnum,
                           embedding_type, embedding_typmod, labels, labels_attnum, labels_type, labels_from, labels_from_oid,
                           labels_from_name, labels_key, labels_key_attnum, included, dimensions, geometry, bits, distance, options,
                           row_triggers, status)
    VALUES (i.name, i.source, i.source_oid, i.source_name, i.key, i.key_attnum, i.key_types, i.embedding, i.embedding_attnum,
            i.embedding_type, i.embedding_typmod, i.labels, i.labels_attnum, i.labels_type, i.labels_from, i.labels_from_oid,
            i.labels_from_name, i.labels_key, i.labels_key_attnum, i.included, i.dimensions, i.geometry, i.bits, i.distance, i.options,
            i.row_triggers, 'building')
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
    -- Such a publication takes our tables along.
    published := (SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname) FROM pg_publication p WHERE p.puballtables);
    IF published IS NOT NULL THEN
        RAISE WARNING 'foh: publication % is FOR ALL TABLES, and so publishes the tables of index %', published, quote_literal(name)
            USING HINT = 'Publish the schemas of the application instead: CREATE PUBLICATION ... FOR TABLES IN SCHEMA ...; see docs/how-to/replicas.md.';
    END IF;
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;

-- The index of that name, locked, for a caller who may change it.
CREATE OR REPLACE FUNCTION foh._to_change(name text) RETURNS foh.index
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index := foh._index(name);
BEGIN
    PERFORM foh._require_owner();
    PERFORM foh._lock(i.id);
    PERFORM foh._refuse_dropped(i);
    RETURN i;
END
$function$;

-- Records how the tables of an index look now, and makes its functions and triggers again. If another column holds the embeddings,
-- all rows must be read again, which an entry in the stream says.
CREATE OR REPLACE FUNCTION foh._replace_index(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF foh._geometry_bits(foh._turned_numbers(old.dimensions, old.distance), (new.options ->> 'geometry')::int) <> old.geometry THEN
        RAISE EXCEPTION 'foh: index % has % geometry bits, and option geometry asks for %', quote_literal(old.name), old.geometry,
            foh._geometry_bits(foh._turned_numbers(old.dimensions, old.distance), (new.options ->> 'geometry')::int)
            USING ERRCODE = 'feature_not_supported', HINT = 'Geometry is chosen when an index is created: create another one, then drop this one.';
    END IF;
    PERFORM foh._check_columns(old, new);
    UPDATE foh.index SET
        source_oid = new.source_oid, source_name = new.source_name, key = new.key, key_attnum = new.key_attnum,
        embedding = new.embedding, embedding_attnum = new.embedding_attnum, embedding_type = new.embedding_type,
        embedding_typmod = new.embedding_typmod, labels = new.labels, labels_attnum = new.labels_attnum, labels_type = new.labels_type,
        labels_from_oid = new.labels_from_oid, labels_from_name = new.labels_from_name, labels_key = new.labels_key,
        labels_key_attnum = new.labels_key_attnum, included = new.included, options = new.options, row_triggers = new.row_triggers
    WHERE id = old.id;
    IF new.key <> old.key THEN
        PERFORM foh._rename_key(old, new);
    END IF;
    PERFORM foh._replace_included(old, new);
    IF (new.labels IS NULL) <> (old.labels IS NULL) THEN
        EXECUTE foh._render((SELECT t.body FROM foh.template t WHERE t.name = 'change_marks'), foh._names(new));
    END IF;
    -- In a restored database the numbers of columns may differ, so names are compared. A table that was distributed since the index was
    -- created was not watched in between.
    IF foh._make_shard_table(foh._names(new)) OR (CASE WHEN old.source_oid = new.source_oid
             THEN (new.embedding_attnum, new.labels_attnum) IS DISTINCT FROM (old.embedding_attnum, old.labels_attnum)
             ELSE (new.embedding, new.labels) IS DISTINCT FROM (old.embedding, old.labels) END)
       OR (new.embedding_type, new.labels_type) IS DISTINCT FROM (old.embedding_type, old.labels_type) THEN
        EXECUTE foh._render('INSERT INTO {stream} (op, version, center) VALUES (''r'', 0, 0)', foh._names(new));
    END IF;
    PERFORM foh._make_functions(new);
    PERFORM foh._attach(new);
END
$function$;

-- Changes options of an index; foh._options says when each takes effect. The next update encodes everything again
-- if label_weight has changed. include: the columns that the index is to include from now on; the next update fills in new ones,
-- and until then conditions on them are answered from the table.
CREATE OR REPLACE FUNCTION foh.alter_index(name text, options jsonb DEFAULT '{}', include name[] DEFAULT NULL) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Settings of the session that change how text is read, names are quoted or numbers are written must not get into what is rendered here.
SET standard_conforming_strings = on
SET quote_all_identifiers = off
SET extra_float_digits = 1
SET lock_timeout = '10s'
AS $function$
DECLARE
    -- Before the index is looked at: it may follow a shard, which Citus hides otherwise.
    citus constant text[] := foh._begin_local();
    old foh.index := foh._to_change(name);
    new foh.index := old;
BEGIN
    -- A column that has another type or name now is a matter for foh.refresh.
    IF EXISTS (SELECT FROM foh._differences(old) d WHERE d.what = 'a column has changed') THEN
        PERFORM foh._refuse_changed(name);
    END IF;
    new.options := foh._check_options(alter_index.options, old.options);
    IF new.options -> 'triggers' <> old.options -> 'triggers' THEN
        PERFORM foh._lock_tables(old, 'ACCESS EXCLUSIVE', false);
        PERFORM foh._remove_triggers(old);
    END IF;
    new := foh._inspect_source(new);
    IF include IS NOT NULL THEN
        new.included := foh._inspect_included(new, include, old);
    END IF;
    PERFORM foh._replace_index(old, new);
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;

-- Brings an index in line with its table after an ALTER: renamed columns and tables are followed by oid and attribute
-- number; embedding and labels may be given where a column was replaced. Makes missing triggers again.
CREATE OR REPLACE FUNCTION foh.refresh(name text, embedding name DEFAULT NULL, labels name DEFAULT NULL) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Settings of the session that change how text is read, names are quoted or numbers are written must not get into what is rendered here.
SET standard_conforming_strings = on
SET quote_all_identifiers = off
SET extra_float_digits = 1
SET lock_timeout = '10s'
AS $function$
DECLARE
    -- Before the index is looked at: it may follow a shard, which Citus hides otherwise.
    citus constant text[] := foh._begin_local();
    old foh.index := foh._to_change(name);
    new foh.index := old;
    include name[] := '{}';
    c record;
BEGIN
    FOR c IN SELECT w.role, w.name, coalesce(CASE w.role WHEN 'embedding' THEN refresh.embedding WHEN 'labels' THEN refresh.labels END, p.name) AS present
             FROM foh._recorded(old) w JOIN foh._present(old) p ON p.at = w.at WHERE w.number > 0 ORDER BY w.at
    LOOP
        CASE c.role
            WHEN 'embedding' THEN new.embedding := c.present;
            WHEN 'labels' THEN new.labels := c.present;
            WHEN 'labels_key' THEN new.labels_key[array_position(old.labels_key, c.name::name)] := c.present;
            WHEN 'included' THEN
                IF c.present IS NULL THEN
                    RAISE NOTICE 'foh: column % is gone, and index % includes it no longer', quote_ident(c.name), quote_literal(name);
                    CONTINUE;
                END IF;
                include := include || c.present::name;
            WHEN 'key' THEN new.key[array_position(old.key, c.name::name)] := c.present;
        END CASE;
        IF c.present IS NULL THEN
            RAISE EXCEPTION 'foh: column % of index % is gone (%)', quote_ident(c.name), quote_literal(name), c.role
                USING ERRCODE = 'undefined_column',
                      HINT = CASE WHEN c.role IN ('embedding', 'labels') THEN format('Name the column that took its place: foh.refresh(%L, %s => ...).', name, c.role)
                                  ELSE format('Drop the index and create it again: SELECT foh.drop_index(%L).', name) END;
        END IF;
    END LOOP;
    IF old.labels IS NULL THEN
        new.labels := refresh.labels;
    END IF;
    new := foh._inspect_source(new);
    new.included := foh._inspect_included(new, include, old);
    PERFORM foh._replace_index(old, new);
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;

-- Removes an index: its triggers, tables and functions. Waits at most 10 seconds for transactions that use them.
CREATE OR REPLACE FUNCTION foh.drop_index(name text, if_exists boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '10s'
SET client_min_messages = warning
AS $function$
DECLARE
    i foh.index;
    citus text[];
BEGIN
    PERFORM foh._require_owner();
    IF if_exists AND NOT EXISTS (SELECT FROM foh.index x WHERE x.name = drop_index.name) THEN
        RETURN;
    END IF;
    i := foh._index(name);
    citus := foh._begin_local();
    PERFORM foh._lock(i.id);
    PERFORM foh._lock_tables(i, 'ACCESS EXCLUSIVE', true);
    PERFORM foh._detach_distributed(i);
    PERFORM foh._drop_objects(i);
    PERFORM foh._end_local(citus);
END
$function$;
