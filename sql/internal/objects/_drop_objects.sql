-- The half of foh.drop_index that writes to schema foh.
CREATE OR REPLACE FUNCTION foh._drop_objects(index int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
    owner name;
    grantees name[];
    o record;
BEGIN
    SELECT * INTO STRICT i FROM foh.index x WHERE x.id = _drop_objects.index;
    owner := foh._source_owner(i);
    PERFORM foh._claimed(i.source, coalesce(owner, foh._owner()));
    grantees := ARRAY(SELECT DISTINCT g.role FROM foh._grantees(i) g);
    FOR o IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
             WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name))
    LOOP
        EXECUTE format('DROP FUNCTION %s', o.signature);
    END LOOP;
    FOR o IN SELECT t.name FROM unnest(foh._tables(i)) AS t (name) LOOP
        EXECUTE format('DROP TABLE %s', o.name);
    END LOOP;
    EXECUTE format('DROP TYPE IF EXISTS foh.%I', i.name || '_result');
    DELETE FROM foh.label x WHERE x.index = i.id;
    DELETE FROM foh.model x WHERE x.index = i.id;
    DELETE FROM foh.model_state x WHERE x.index = i.id;
    DELETE FROM foh.updating x WHERE x.index = i.id;
    DELETE FROM foh.run x WHERE x.index = i.id;
    DELETE FROM foh.index x WHERE x.id = i.id;
    PERFORM foh._revoke_unused(g.role) FROM unnest(grantees) AS g (role);
END
$function$;
