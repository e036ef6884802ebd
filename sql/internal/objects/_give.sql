-- Makes each function of an index belong to the right role, and takes it from PUBLIC. A role can own a function only in a schema
-- where it may create objects: it gets that right for a moment, which no other session sees.
CREATE OR REPLACE FUNCTION foh._give(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ours constant name := foh._owner();
    theirs constant name := foh._source_owner(i);
    f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature, pg_get_userbyid(p.proowner) AS owner,
                    CASE WHEN p.proname = ANY (SELECT (i.name || '_' || s)::name FROM unnest(foh._owned_by_source()) s) THEN theirs ELSE ours END AS due
             FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
        IF f.owner = f.due THEN
            CONTINUE;
        END IF;
        PERFORM foh._may_act_for(f.due);
        IF NOT has_schema_privilege(f.due, 'foh', 'CREATE') THEN
            EXECUTE format('GRANT CREATE ON SCHEMA foh TO %I', f.due);
            EXECUTE format('ALTER FUNCTION %s OWNER TO %I', f.signature, f.due);
            EXECUTE format('REVOKE CREATE ON SCHEMA foh FROM %I', f.due);
        ELSE
            EXECUTE format('ALTER FUNCTION %s OWNER TO %I', f.signature, f.due);
        END IF;
    END LOOP;
END
$function$;
