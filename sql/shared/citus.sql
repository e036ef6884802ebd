-- Tables of Citus. An index on a distributed table has an inbox, triggers and two functions on every node; on any other table of
-- Citus an index follows the copy of this node.

-- What a table is to Citus: distributed, single_shard, reference or managed (local to the coordinator, and in the metadata of Citus);
-- null for an ordinary table, and where there is no Citus. Only dynamic SQL names the catalog of Citus, which most databases lack.
CREATE OR REPLACE FUNCTION foh._citus_kind(relation oid) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    kind text;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE $sql$
            SELECT CASE WHEN p.partmethod <> 'n' THEN 'distributed' WHEN p.repmodel = 't' THEN 'reference'
                        WHEN p.colocationid <> 0 THEN 'single_shard' ELSE 'managed' END
            FROM pg_dist_partition p WHERE p.logicalrelid = $1 $sql$ INTO kind USING relation;
    END IF;
    RETURN kind;
END
$function$;

-- Why a table of Citus cannot have an index; null where it can, and for an ordinary table. An index on a reference table, or on one that is
-- local in the metadata of Citus, follows a shard (see foh._citus_source), so the table itself is met here only where it became one later.
CREATE OR REPLACE FUNCTION foh._citus_refusal(relation oid) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    refusal text;
BEGIN
    CASE foh._citus_kind(relation)
        WHEN 'distributed' THEN
            EXECUTE $sql$
                SELECT CASE
                    WHEN c.relkind = 'p' THEN 'is partitioned and distributed by Citus: writes to a partition would not be seen; SELECT undistribute_table(...) first'
                    WHEN p.partmethod <> 'h' THEN 'is distributed by range or by appending: only tables that are distributed by the hash of a column can have an index'
                    WHEN p.repmodel = 'c' THEN 'has shards in several copies (citus.shard_replication_factor): an index would see each write several times'
                    WHEN quote_ident(n.nspname) <> n.nspname THEN 'is in a schema whose name needs quotes: Citus leaves them out where it grants a function on other nodes; rename the schema'
                    WHEN octet_length(c.relname) > 50 THEN 'has a name of more than 50 bytes: with the number of a shard it is cut off; rename the table'
                END
                FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.logicalrelid = $1 $sql$ INTO refusal USING relation;
        WHEN 'single_shard' THEN refusal := 'is a distributed table of Citus with a single shard: its rows are written there, unseen by triggers; SELECT undistribute_table(...) first';
        WHEN 'reference' THEN refusal := 'has become a reference table of Citus: its rows are written to a copy on each node; drop the index and create it again';
        WHEN 'managed' THEN refusal := 'has come into the metadata of Citus: its rows are written to a shard; drop the index and create it again';
        ELSE NULL;
    END CASE;
    RETURN refusal;
END
$function$;

-- The column by whose hash Citus finds the shard of a row. It is in every unique index of the table, so in the key of an index.
CREATE OR REPLACE FUNCTION foh._citus_column(relation oid) RETURNS name
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    column_name name;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT column_to_column_name(p.logicalrelid, p.partkey) FROM pg_dist_partition p WHERE p.logicalrelid = $1' INTO column_name USING relation;
    END IF;
    RETURN column_name;
END
$function$;

-- The table that an index on this table follows: the table itself; or, of a reference table and of one that is local in the metadata
-- of Citus, the shard of this node, which gets every write, as an ordinary table does.
CREATE OR REPLACE FUNCTION foh._citus_source(relation regclass) RETURNS regclass
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    shard text;
BEGIN
    IF foh._citus_kind(relation) IN ('reference', 'managed') THEN
        -- Citus leaves out the schema public.
        EXECUTE $sql$SELECT CASE c.relnamespace WHEN to_regnamespace('public') THEN 'public.' ELSE '' END || shard_name(s.logicalrelid, s.shardid)
                     FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid WHERE s.logicalrelid = $1$sql$ INTO shard USING relation;
        IF to_regclass(shard) IS NULL THEN
            RAISE EXCEPTION 'foh: % has no copy on this node, on which an index could follow its writes', foh._qualified(relation)
                USING ERRCODE = 'wrong_object_type',
                      HINT = 'Run this on the coordinator, after SELECT citus_set_coordinator_host(...) has put it into the metadata of Citus.';
        END IF;
        RETURN to_regclass(shard);
    END IF;
    RETURN relation;
END
$function$;

-- Changes two settings of Citus for work on an index, and returns what they were, for foh._end_local; null where there is no Citus.
-- One keeps changes of schema foh on this node: Citus would repeat them on the workers. The other
-- shows shards in the catalog: the index of a reference table follows the copy on this node. An error undoes both.
CREATE OR REPLACE FUNCTION foh._begin_local() RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was text[];
BEGIN
    IF current_setting('citus.enable_ddl_propagation', true) <> '' THEN
        was := ARRAY[current_setting('citus.enable_ddl_propagation'), current_setting('citus.override_table_visibility')];
        PERFORM foh._end_local('{off,off}');
    END IF;
    RETURN was;
END
$function$;

-- Puts back the settings that foh._begin_local changed.
CREATE OR REPLACE FUNCTION foh._end_local(was text[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF was IS NOT NULL THEN
        PERFORM set_config('citus.enable_ddl_propagation', was[1], true), set_config('citus.override_table_visibility', was[2], true);
    END IF;
END
$function$;

-- Sets the role and the settings under which Citus makes objects on all nodes: as foh's owner, shard after shard. Returns what they were;
-- given that, puts them back.
CREATE OR REPLACE FUNCTION foh._spread(given text[] DEFAULT NULL) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was constant text[] := ARRAY[current_setting('role'), current_setting('citus.enable_ddl_propagation'), current_setting('citus.enable_unsafe_triggers'),
                                 current_setting('citus.multi_shard_modify_mode')];
BEGIN
    given := coalesce(given, ARRAY[was[1], 'on', 'on', 'sequential']);
    PERFORM set_config('role', given[1], true), set_config('citus.enable_ddl_propagation', given[2], true),
            set_config('citus.enable_unsafe_triggers', given[3], true), set_config('citus.multi_shard_modify_mode', given[4], true);
    RETURN was;
END
$function$;

-- Makes the table of shards where the source is distributed. Returns whether it made the table.
CREATE OR REPLACE FUNCTION foh._make_shard_table(names jsonb) RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT (names ->> 'distributed')::boolean OR to_regclass(names ->> 'shard') IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE foh._render((SELECT t.body FROM foh.template t WHERE t.name = 'shard'), names);
    RETURN true;
END
$function$;

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
        RAISE EXCEPTION 'foh: % is distributed, and its labels are in another table, %, whose writes the nodes could not note', i.source_name, i.labels_from_name
            USING ERRCODE = 'feature_not_supported', HINT = 'Keep the labels in a column of the table, of type text[].';
    END IF;
    was := foh._spread();
    fresh := to_regclass(names ->> 'inbox') IS NULL;
    IF fresh THEN
        EXECUTE foh._render((SELECT m.body FROM foh.template m WHERE m.name = 'node_tables'), names);
    END IF;
    FOR t IN SELECT m.body FROM foh._templates(i) m WHERE m.kind = 'node' ORDER BY m.at LOOP
        EXECUTE foh._render(t.body, names);
    END LOOP;
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', to_regproc(names ->> 'waiting')::regprocedure);
    -- The default privileges of the schema are meant for tables of the application: a role that may read all of them, but only some rows or
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
             FROM foh._events() e
             WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = i.source AND g.tgname = format('foh_%s_%s', i.name, lower(e.event)))
    LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s FOR EACH STATEMENT EXECUTE FUNCTION %s()', t.name, t.event, i.source_name, t.rows, names ->> 'note');
    END LOOP;
    EXECUTE foh._render('SELECT {record_shards}()', names);
    PERFORM foh._spread(was);
END
$function$;

-- Removes from all nodes what foh._attach_distributed made.
CREATE OR REPLACE FUNCTION foh._detach_distributed(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $function$
DECLARE
    names constant jsonb := foh._node_names(i);
    was text[];
    t record;
BEGIN
    -- The table itself may have been dropped before.
    IF to_regclass(names ->> 'inbox') IS NULL THEN
        RETURN;
    END IF;
    was := foh._spread();
    FOR t IN SELECT g.tgname FROM pg_trigger g WHERE g.tgrelid = i.source AND g.tgfoid = to_regproc(names ->> 'note') LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, i.source_name);
    END LOOP;
    -- CASCADE: a shard that was moved has a trigger of its own for TRUNCATE.
    EXECUTE foh._render('DROP FUNCTION IF EXISTS {note}() CASCADE', names);
    FOR t IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
             WHERE p.oid IN (to_regproc(names ->> 'read'), to_regproc(names ->> 'waiting')) LOOP
        EXECUTE format('DROP FUNCTION %s', t.signature);
    END LOOP;
    EXECUTE foh._render('DROP TABLE IF EXISTS {token}, {inbox}', names);
    PERFORM foh._spread(was);
END
$function$;

-- Grants or revokes the one function that a search of a distributed table calls on the nodes and that PUBLIC may not call.
CREATE OR REPLACE FUNCTION foh._grant_on_nodes(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was text[];
BEGIN
    IF foh._citus_kind(i.source) = 'distributed' THEN
        was := foh._spread();
        EXECUTE format(CASE WHEN revoke THEN 'REVOKE EXECUTE ON FUNCTION %s FROM %I' ELSE 'GRANT EXECUTE ON FUNCTION %s TO %I' END,
                       to_regproc(foh._node_names(i) ->> 'waiting')::regprocedure, role);
        PERFORM foh._spread(was);
    END IF;
END
$function$;
