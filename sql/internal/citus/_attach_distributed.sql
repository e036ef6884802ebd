-- What an index on a distributed table has on every node: the inbox, the triggers of the shards, and the functions that a search calls there.
-- All of it belongs to foh's owner, to whom the table must belong; Citus makes the same on all nodes. Can be repeated.
CREATE OR REPLACE FUNCTION foh._attach_distributed(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET check_function_bodies = off
AS $function$
DECLARE
    names constant jsonb := foh._names(i);
    was text[];
    -- Whether the inbox is new here.
    fresh boolean;
    t record;
BEGIN
    IF NOT (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = i.source) THEN
        RAISE EXCEPTION 'foh: % is distributed, and does not belong to %, as whom its index works on all nodes', i.source_name, quote_ident(current_user)
            USING ERRCODE = 'insufficient_privilege', HINT = format('ALTER TABLE %s OWNER TO %I;', i.source_name, current_user);
    ELSIF i.labels_from IS NOT NULL THEN
        RAISE EXCEPTION 'foh: % is distributed, and the labels are in a table of their own, %, whose writes the nodes could not note', i.source_name, i.labels_from_name
            USING ERRCODE = 'feature_not_supported', HINT = 'Keep the labels in a column of the table, of type text[].';
    END IF;
    was := foh._begin_spread(i);
    fresh := to_regclass(names ->> 'inbox') IS NULL;
    IF fresh THEN
        EXECUTE foh._render((SELECT m.body FROM foh.template m WHERE m.name = 'node_tables'), names);
    END IF;
    FOR t IN SELECT m.name, m.body FROM foh.template m WHERE starts_with(m.name, 'node_') AND m.name <> 'node_tables' ORDER BY m.name LOOP
        EXECUTE foh._render(t.body, names);
    END LOOP;
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', to_regproc(names ->> 'waiting')::regprocedure);
    -- The default privileges of the schema are meant for tables of the application: whoever may read all of them, but only some rows or
    -- columns of this one, must not read the vectors in the inbox.
    FOR t IN SELECT format('REVOKE ALL ON %s %s FROM %I', o.kind, o.name, r.rolname) AS statement
             FROM (SELECT 'TABLE' AS kind, c.oid::regclass::text AS name, c.relacl AS acl, c.relowner AS owner FROM pg_class c
                   WHERE c.oid IN (to_regclass(names ->> 'inbox'), to_regclass(names ->> 'token'))
                   UNION ALL
                   SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p WHERE p.oid = to_regproc(names ->> 'waiting')) o,
                  LATERAL (SELECT DISTINCT a.grantee FROM aclexplode(o.acl) a) a JOIN pg_roles r ON r.oid = a.grantee
             WHERE fresh AND r.oid <> o.owner
    LOOP
        EXECUTE t.statement;
    END LOOP;
    FOR t IN SELECT format('foh_%s_%s', i.name, lower(e.event)) AS name, e.event, e.rows
             FROM (VALUES ('INSERT', 'REFERENCING NEW TABLE AS new_rows'),
                          ('UPDATE', 'REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows'),
                          ('DELETE', 'REFERENCING OLD TABLE AS old_rows'),
                          ('TRUNCATE', '')) AS e (event, rows)
             WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = i.source AND g.tgname = format('foh_%s_%s', i.name, lower(e.event)))
    LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s FOR EACH STATEMENT EXECUTE FUNCTION %s()', t.name, t.event, i.source_name, t.rows, names ->> 'note');
    END LOOP;
    EXECUTE foh._render('SELECT {record_shards}()', names);
    PERFORM foh._end_spread(was);
END
$function$;
