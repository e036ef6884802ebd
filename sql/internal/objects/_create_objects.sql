-- The half of foh.create_index that writes to schema foh, with its owner's rights: checks what it is told, and makes the tables.
CREATE OR REPLACE FUNCTION foh._create_objects(i foh.index) RETURNS foh.index
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM foh._check_name(i.name);
    i.options := foh._check_options(i.options);
    i := foh._inspect_source(i);
    PERFORM foh._check_arguments(i);
    PERFORM foh._check_dimensions(i, i.dimensions);
    PERFORM foh._claimed(i.source, foh._source_owner(i));
    IF EXISTS (SELECT FROM foh.index x WHERE x.name = i.name) THEN
        RAISE EXCEPTION 'foh: index % exists already', quote_literal(i.name) USING ERRCODE = 'duplicate_object',
            HINT = format('SELECT foh.drop_index(%L) removes it.', i.name);
    END IF;
    INSERT INTO foh.index (name, source, source_oid, source_name, key, key_attnum, key_type, embedding, embedding_attnum,
                           embedding_type, embedding_typmod, labels, labels_attnum, labels_type, labels_from, labels_from_oid,
                           labels_from_name, labels_key, labels_key_attnum, dimensions, geometry, bits, distance, options,
                           row_triggers, several, status)
    VALUES (i.name, i.source, i.source_oid, i.source_name, i.key, i.key_attnum, i.key_type, i.embedding, i.embedding_attnum,
            i.embedding_type, i.embedding_typmod, i.labels, i.labels_attnum, i.labels_type, i.labels_from, i.labels_from_oid,
            i.labels_from_name, i.labels_key, i.labels_key_attnum, i.dimensions, i.geometry, i.bits, i.distance, i.options,
            i.row_triggers, foh._has_several(i), 'building')
    RETURNING * INTO i;
    INSERT INTO foh.updating (index) VALUES (i.id);
    RETURN foh._make_tables(i);
END
$function$;
