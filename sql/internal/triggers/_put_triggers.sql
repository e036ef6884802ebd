-- Puts the triggers of an index on one of its tables, where they are missing or disabled. One statement trigger per event, since
-- transition tables allow no more; row triggers where partitions are written directly. Never with a column list: it
-- would block ALTER COLUMN TYPE on the application's table.
CREATE OR REPLACE FUNCTION foh._put_triggers(i foh.index, relation regclass, suffix text, per_row boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    t record;
BEGIN
    FOR t IN
        SELECT format('foh_%s_%s', i.name, lower(event)) AS name, event,
               CASE WHEN event = 'TRUNCATE' THEN 'FOR EACH STATEMENT'
                    WHEN per_row THEN 'FOR EACH ROW'
                    ELSE rows || ' FOR EACH STATEMENT' END AS form
        FROM (VALUES ('INSERT', 'REFERENCING NEW TABLE AS new_rows'),
                     ('UPDATE', 'REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows'),
                     ('DELETE', 'REFERENCING OLD TABLE AS old_rows'),
                     ('TRUNCATE', '')) AS e (event, rows)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = relation AND tgname = t.name) THEN
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s EXECUTE FUNCTION foh.%I()',
                           t.name, t.event, relation, t.form, i.name || '_' || suffix);
        END IF;
        IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = relation AND tgname = t.name
                   AND tgenabled <> CASE i.options ->> 'triggers' WHEN 'always' THEN 'A' ELSE 'O' END::"char") THEN
            IF NOT (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = relation) THEN
                RAISE EXCEPTION 'foh: trigger % of % must be enabled by the owner of the table', quote_ident(t.name), relation
                    USING ERRCODE = 'insufficient_privilege', HINT = 'Leave the option triggers at auto, or give the table to the owner of schema foh.';
            END IF;
            EXECUTE format('ALTER TABLE %s ENABLE %s TRIGGER %I', relation, CASE i.options ->> 'triggers' WHEN 'always' THEN 'ALWAYS' END, t.name);
        END IF;
    END LOOP;
END
$function$;
