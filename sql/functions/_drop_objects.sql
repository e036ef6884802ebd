-- The half of foh.drop_index that writes to schema foh.
CREATE OR REPLACE FUNCTION foh._drop_objects(i foh.index) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    o record;
BEGIN
    FOR o IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
             WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name))
    LOOP
        EXECUTE format('DROP FUNCTION %s', o.signature);
    END LOOP;
    -- Index model has a function model_state; the table of that name belongs to all indexes.
    FOR o IN SELECT c.oid::regclass AS name FROM pg_class c
             WHERE c.relnamespace = 'foh'::regnamespace AND c.relkind = 'r' AND c.relname = ANY (foh._object_names(i.name))
               AND c.relname <> 'model_state'
    LOOP
        EXECUTE format('DROP TABLE %s', o.name);
    END LOOP;
    EXECUTE format('DROP TYPE IF EXISTS foh.%I', i.name || '_result');
    DELETE FROM foh.label WHERE index = i.id;
    DELETE FROM foh.model WHERE index = i.id;
    DELETE FROM foh.model_state WHERE index = i.id;
    DELETE FROM foh.run WHERE index = i.id;
    DELETE FROM foh.index WHERE id = i.id;
END
$function$;
