-- Puts the triggers of an index on its tables. Can be repeated; foh.refresh does.
CREATE OR REPLACE FUNCTION foh._attach(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF foh._citus_kind(i.source) = 'distributed' THEN
        PERFORM foh._attach_distributed(i);
        RETURN;
    END IF;
    -- Tables are locked only where a trigger must be made or enabled.
    IF EXISTS (SELECT FROM unnest(ARRAY[i.source, i.labels_from]) AS t (relation) CROSS JOIN unnest(ARRAY['insert', 'update', 'delete', 'truncate']) AS e (event)
               WHERE t.relation IS NOT NULL
                 AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.relation AND g.tgname = format('foh_%s_%s', i.name, e.event)
                                 AND g.tgenabled = CASE i.options ->> 'triggers' WHEN 'always' THEN 'A' ELSE 'O' END::"char")) THEN
        PERFORM foh._lock_tables(i, 'SHARE ROW EXCLUSIVE', false);
    END IF;
    PERFORM foh._put_triggers(i, i.source, 'capture', i.row_triggers);
    IF i.labels_from IS NOT NULL THEN
        PERFORM foh._put_triggers(i, i.labels_from, 'capturelabels',
                                  i.row_triggers OR (SELECT relkind = 'p' FROM pg_class WHERE oid = i.labels_from));
    END IF;
END
$function$;
