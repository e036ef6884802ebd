-- Makes or replaces the functions of an index from the templates, and gives each to whom it belongs. With the rights of who
-- calls it: a superuser, or foh's owner.
CREATE OR REPLACE FUNCTION foh._define_functions(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET check_function_bodies = off
AS $function$
DECLARE
    -- CREATE OR REPLACE makes a new version of the row in pg_proc: what is still at its old place was not made again.
    before tid[] := ARRAY(SELECT p.ctid FROM pg_proc p
                          WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name)));
    names constant jsonb := foh._names(i);
    owner constant name := foh._source_owner(i);
    former constant name := foh._acting_role(i.name);
    t record;
BEGIN
    PERFORM foh._may_act_for(owner);
    PERFORM foh._take_back(i);
    FOR t IN SELECT body FROM foh.template WHERE name NOT IN ('tables', 'projection')
             AND (name <> 'capture_labels' OR i.labels_from IS NOT NULL) ORDER BY name
    LOOP
        EXECUTE foh._render(t.body, names);
    END LOOP;
    PERFORM foh._drop_outdated(i, before);
    PERFORM foh._give(i);
    IF former <> owner THEN
        PERFORM foh._grant_updating(i, former, true);
    END IF;
    PERFORM foh._grant_index(i, owner, 'owner');
    PERFORM foh._grant_again(i);
END
$function$;
