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
