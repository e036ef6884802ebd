-- Makes or replaces the functions of an index from the templates. All belong to foh's owner; PUBLIC may call none.
CREATE OR REPLACE FUNCTION foh._make_functions(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET check_function_bodies = off
AS $function$
DECLARE
    -- CREATE OR REPLACE writes a new row version in pg_proc: a function that is still at its old ctid was not made again.
    before tid[] := ARRAY(SELECT p.ctid FROM pg_proc p WHERE p.oid IN (SELECT f.oid FROM foh._functions(i.name) f));
    names jsonb := foh._names(i);
    distributed constant boolean := coalesce(foh._citus_kind(i.source) = 'distributed', false);
    t record;
BEGIN
    -- Pieces of functions that depend on the kind of the index; a piece may contain an earlier one.
    FOR t IN
        SELECT p.placeholder, m.body
        FROM (VALUES (1, 'queue_keys', CASE WHEN i.row_triggers THEN 'queue_row' ELSE 'queue_statement' END),
                     (2, 'record_rows', CASE WHEN i.row_triggers THEN 'record_row' ELSE 'record_statement' END),
                     (3, 'found', 'found'), (4, 'refuse_arguments', 'refuse_arguments'),
                     (5, 'second_look', CASE WHEN i.labels IS NULL THEN 'no_second_look' ELSE 'second_look' END)) AS p (at, placeholder, fragment)
        JOIN foh.template m ON m.name = 'fragment_' || p.fragment ORDER BY p.at
    LOOP
        names := names || jsonb_build_object(t.placeholder, foh._render(t.body, names));
    END LOOP;
    -- What differs for a distributed table of Citus stands in the place of the template of that name: see sql/index/citus.
    FOR t IN SELECT m.body FROM foh.template m WHERE m.name NOT IN ('tables', 'first_model', 'change_marks') AND NOT starts_with(m.name, 'fragment_')
             AND (m.name <> 'capture_labels' OR i.labels_from IS NOT NULL) AND NOT starts_with(m.name, 'node_')
             AND CASE WHEN distributed THEN NOT EXISTS (SELECT FROM foh.template d WHERE d.name = 'distributed_' || m.name)
                      ELSE NOT starts_with(m.name, 'distributed_') END ORDER BY m.name
    LOOP
        EXECUTE foh._render(t.body, names);
    END LOOP;
    PERFORM foh._drop_outdated(i, before);
    FOR t IN SELECT f.oid::regprocedure AS signature FROM foh._functions(i.name) f LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', t.signature);
    END LOOP;
    PERFORM foh._grant_updating(r, false) FROM foh._updaters() r;
END
$function$;
