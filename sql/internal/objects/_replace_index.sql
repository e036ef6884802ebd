-- Records how the tables of an index look now; the caller must make its functions again afterwards. Where another column holds
-- the embeddings all rows must be read again, which an entry in the stream says.
CREATE OR REPLACE FUNCTION foh._replace_index(old foh.index, new foh.index) RETURNS foh.index
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
    new.several := old.several OR (new.options ->> 'homes')::int > 1 OR (new.options ->> 'neighbors')::int > 0;
    UPDATE foh.index SET
        source_oid = new.source_oid, source_name = new.source_name, key = new.key, key_attnum = new.key_attnum,
        embedding = new.embedding, embedding_attnum = new.embedding_attnum, embedding_type = new.embedding_type,
        embedding_typmod = new.embedding_typmod, labels = new.labels, labels_attnum = new.labels_attnum, labels_type = new.labels_type,
        labels_from_oid = new.labels_from_oid, labels_from_name = new.labels_from_name, labels_key = new.labels_key,
        labels_key_attnum = new.labels_key_attnum, options = new.options, row_triggers = new.row_triggers, several = new.several
    WHERE id = old.id;
    IF new.key <> old.key THEN
        PERFORM foh._rename_key(old, new);
    END IF;
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
    RETURN new;
END
$function$;
