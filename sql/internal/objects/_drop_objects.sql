-- Drops what an index has in schema foh, and the triggers, which depend on its functions.
CREATE OR REPLACE FUNCTION foh._drop_objects(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    readers constant name[] := ARRAY(SELECT foh._readers(i));
    o record;
BEGIN
    PERFORM foh._remove_triggers(i);
    FOR o IN SELECT f.oid::regprocedure AS signature FROM foh._functions(i.name) f LOOP
        EXECUTE format('DROP FUNCTION %s', o.signature);
    END LOOP;
    FOR o IN SELECT t.name FROM unnest(foh._tables(i.name)) AS t (name) LOOP
        EXECUTE format('DROP TABLE %s', o.name);
    END LOOP;
    EXECUTE format('DROP TYPE IF EXISTS foh.%I', i.name || '_result');
    DELETE FROM foh.label x WHERE x.index = i.id;
    DELETE FROM foh.model x WHERE x.index = i.id;
    DELETE FROM foh.model_state x WHERE x.index = i.id;
    DELETE FROM foh.updating x WHERE x.index = i.id;
    DELETE FROM foh.run x WHERE x.index = i.id;
    DELETE FROM foh.index x WHERE x.id = i.id;
    PERFORM foh._revoke_unused(r) FROM unnest(readers) r;
END
$function$;
