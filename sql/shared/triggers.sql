-- The triggers that an index has on the tables of the application, and the partitions, whose changes fire none.

-- What triggers are for, and what a statement trigger sees of the rows.
CREATE OR REPLACE FUNCTION foh._events() RETURNS TABLE (event text, rows text)
LANGUAGE sql IMMUTABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    VALUES ('INSERT', 'REFERENCING NEW TABLE AS new_rows'), ('UPDATE', 'REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows'),
           ('DELETE', 'REFERENCING OLD TABLE AS old_rows'), ('TRUNCATE', '')
$function$;

-- Puts the triggers of an index on its tables, where they are missing or disabled. One statement trigger per event, since transition
-- tables allow no more; row triggers where partitions are written directly. Never with a column list: it would block ALTER COLUMN TYPE on
-- the application's table.
CREATE OR REPLACE FUNCTION foh._attach(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    enabled constant "char" := CASE i.options ->> 'triggers' WHEN 'always' THEN 'A' ELSE 'O' END;
    locked boolean := false;
    t record;
BEGIN
    IF foh._citus_kind(i.source) = 'distributed' THEN
        PERFORM foh._attach_distributed(i);
        RETURN;
    END IF;
    FOR t IN
        SELECT r.relation::regclass AS relation, r.suffix, n.name, e.event, g.tgenabled,
               CASE WHEN e.event <> 'TRUNCATE' AND r.per_row THEN 'FOR EACH ROW' ELSE CASE WHEN r.per_row THEN '' ELSE e.rows END || ' FOR EACH STATEMENT' END AS form
        FROM (VALUES (i.source, 'capture', i.row_triggers),
                     (i.labels_from, 'capturelabels', i.row_triggers OR (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = i.labels_from))) AS r (relation, suffix, per_row)
        CROSS JOIN foh._events() e
        CROSS JOIN LATERAL format('foh_%s_%s', i.name, lower(e.event)) AS n (name)
        LEFT JOIN pg_trigger g ON g.tgrelid = r.relation AND g.tgname = n.name
        WHERE r.relation IS NOT NULL AND g.tgenabled IS DISTINCT FROM enabled
    LOOP
        -- Tables are locked only if a trigger must be made or enabled.
        IF NOT locked THEN
            PERFORM foh._lock_tables(i, 'SHARE ROW EXCLUSIVE', false);
            locked := true;
        END IF;
        IF t.tgenabled IS NULL THEN
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s EXECUTE FUNCTION foh.%I()', t.name, t.event, t.relation, t.form, i.name || '_' || t.suffix);
        END IF;
        IF coalesce(t.tgenabled, 'O') <> enabled THEN
            IF NOT (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = t.relation) THEN
                RAISE EXCEPTION 'foh: trigger % of % must be enabled by the owner of the table', quote_ident(t.name), t.relation
                    USING ERRCODE = 'insufficient_privilege', HINT = 'Leave the option triggers at auto, or give the table to the owner of schema foh.';
            END IF;
            EXECUTE format('ALTER TABLE %s ENABLE %s TRIGGER %I', t.relation, CASE enabled WHEN 'A' THEN 'ALWAYS' END, t.name);
        END IF;
    END LOOP;
END
$function$;

-- Drops the triggers of an index, wherever they are: Citus may have moved them to a shard of the table. They go with their functions,
-- which foh's owner may drop even where the table belongs to another role.
CREATE OR REPLACE FUNCTION foh._remove_triggers(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $function$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature FROM foh._functions(i.name) p WHERE p.prorettype = 'trigger'::regtype LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', f.signature);
    END LOOP;
END
$function$;

-- The partitions of both tables of an index as they are now, each with the number of its file, which TRUNCATE changes: what foh._follow
-- compares with what it saw the last time. Null for a table without partitions, and for a distributed table of Citus, whose rows are not here.
CREATE OR REPLACE FUNCTION foh._leaves(i foh.index) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_object_agg(t.name, CASE WHEN c.relkind = 'p' AND foh._citus_kind(c.oid) IS DISTINCT FROM 'distributed' THEN (
               SELECT jsonb_object_agg(l.oid::text, l.relfilenode::bigint) FROM foh._partitions(c.oid) p JOIN pg_class l ON l.oid = p.oid) END)
    FROM (VALUES ('source', i.source), ('labels', i.labels_from)) AS t (name, relation) LEFT JOIN pg_class c ON c.oid = t.relation
$function$;

-- Follows what became of the partitions of an index since the last call. TRUNCATE, DETACH and DROP of a partition and ATTACH of one that
-- has rows fire no trigger of the table. What may have changed is queued; returns how many entries that made, or null where all
-- partitions are what they were. Logical replication truncates a partitioned table in this way, partition by partition.
CREATE OR REPLACE FUNCTION foh._follow(index int) RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
    before jsonb;
    -- Read before the rows are: a change that commits in between is found by the next call, too.
    present jsonb;
    r record;
    queued bigint := 0;
    n bigint;
BEGIN
    PERFORM foh._add_values(index);
    SELECT x.* INTO i FROM foh.index x WHERE x.id = _follow.index;
    SELECT u.partitions INTO before FROM foh.updating u WHERE u.index = i.id;
    present := foh._leaves(i);
    IF before = present THEN
        RETURN NULL;
    END IF;
    FOR r IN
        SELECT t.name,
               EXISTS (SELECT FROM jsonb_each(b.leaves) b WHERE p.leaves -> b.key IS DISTINCT FROM b.value) AS lost,
               -- A partition that is empty now has held no row that no trigger saw.
               ARRAY(SELECT p.key::oid FROM jsonb_each(p.leaves) p WHERE NOT b.leaves ? p.key AND pg_relation_size(p.key::oid) > 0) AS attached
        FROM (VALUES ('source', i.source::oid), ('labels', i.labels_from::oid)) AS t (name, oid),
             LATERAL (SELECT before -> t.name AS leaves) b, LATERAL (SELECT present -> t.name AS leaves) p
        -- In a restored database, and where an earlier version made the index, there is nothing to compare with.
        WHERE b.leaves ? t.oid::text AND p.leaves ? t.oid::text
    LOOP
        IF r.name = 'source' AND (r.lost OR r.attached <> '{}') THEN
            EXECUTE format('SELECT foh.%I($1, $2)', i.name || '_follow') INTO n USING r.lost, r.attached;
            queued := queued + n;
        ELSIF r.lost OR r.attached <> '{}' THEN
            -- As after TRUNCATE of the whole table of labels: it is not known which rows had these labels.
            EXECUTE format('INSERT INTO foh.%I (op, version, center) VALUES (''r'', 0, 0)', i.name || '_stream');
            queued := queued + 1;
        END IF;
    END LOOP;
    UPDATE foh.updating u SET partitions = present WHERE u.index = i.id;
    RETURN queued;
END
$function$;
