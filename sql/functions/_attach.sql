-- The half of foh.create_index that touches the application's table, with the caller's rights: what the triggers may
-- read, and the triggers. Can be repeated; foh.refresh does.
CREATE OR REPLACE FUNCTION foh._attach(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM foh._allow_reading(i.source, ARRAY[i.key, i.embedding] || CASE WHEN i.labels_from IS NULL THEN i.labels END);
    PERFORM foh._put_triggers(i, i.source, 'capture', i.row_triggers);
    IF i.labels_from IS NOT NULL THEN
        PERFORM foh._allow_reading(i.labels_from, ARRAY[i.labels_key, i.labels]);
        PERFORM foh._put_triggers(i, i.labels_from, 'capture_labels',
                                  i.row_triggers OR (SELECT relkind = 'p' FROM pg_class WHERE oid = i.labels_from));
    END IF;
END
$function$;
