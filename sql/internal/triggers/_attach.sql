-- The half of foh.create_index that touches the application's table, with the caller's rights: its triggers. Can be repeated;
-- foh.refresh does.
CREATE OR REPLACE FUNCTION foh._attach(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM foh._put_triggers(i, i.source, 'capture', i.row_triggers);
    IF i.labels_from IS NOT NULL THEN
        PERFORM foh._put_triggers(i, i.labels_from, 'capture_labels',
                                  i.row_triggers OR (SELECT relkind = 'p' FROM pg_class WHERE oid = i.labels_from));
    END IF;
END
$function$;
