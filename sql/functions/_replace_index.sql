-- Records how the tables of an index look now, and makes its functions again. Rows of another embedding column must be
-- read again: the stream says so.
CREATE OR REPLACE FUNCTION foh._replace_index(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    new.several := old.several OR foh._has_several(new);
    UPDATE foh.index SET
        source_oid = new.source_oid, source_name = new.source_name, key = new.key, key_attnum = new.key_attnum,
        embedding = new.embedding, embedding_attnum = new.embedding_attnum, embedding_type = new.embedding_type,
        embedding_typmod = new.embedding_typmod, labels = new.labels, labels_attnum = new.labels_attnum, labels_type = new.labels_type,
        labels_from_oid = new.labels_from_oid, labels_from_name = new.labels_from_name, labels_key = new.labels_key,
        labels_key_attnum = new.labels_key_attnum, options = new.options, row_triggers = new.row_triggers, several = new.several
    WHERE id = old.id;
    IF new.key <> old.key THEN
        PERFORM foh._rename_key(old, new);
    ELSE
        PERFORM foh._define_functions(new);
    END IF;
    -- In a restored database numbers may have moved, and names have not.
    IF (CASE WHEN old.source_oid = new.source_oid
             THEN (new.embedding_attnum, new.labels_attnum) IS DISTINCT FROM (old.embedding_attnum, old.labels_attnum)
             ELSE (new.embedding, new.labels) IS DISTINCT FROM (old.embedding, old.labels) END)
       OR (new.embedding_type, new.labels_type) IS DISTINCT FROM (old.embedding_type, old.labels_type) THEN
        EXECUTE foh._render('INSERT INTO {stream} (op, version, center) VALUES (''r'', 0, 0)', foh._names(new));
    END IF;
END
$function$;
