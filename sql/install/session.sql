-- The beginning and the end of every migration, and of every command that reads schema foh.

-- foh: step lock
-- One migration at a time in this database: the others wait here and then find the work done.
SELECT pg_catalog.pg_advisory_xact_lock(6713192, 0);
-- Schema foh is on this node alone: Citus, where it is installed, would repeat all this on the workers.
-- Citus also hides shards, which some indexes follow. restore_settings puts both settings back.
SELECT pg_catalog.set_config('foh.caller_citus', pg_catalog.concat_ws(' ', s.propagation, s.visibility), true),
       pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true), pg_catalog.set_config('citus.override_table_visibility', 'off', true)
FROM (SELECT pg_catalog.current_setting('citus.enable_ddl_propagation', true) AS propagation,
             pg_catalog.current_setting('citus.override_table_visibility', true) AS visibility) s WHERE s.propagation OPERATOR(pg_catalog.<>) ''::pg_catalog.text;

-- foh: step trust
-- Run before anything in schema foh is read. A role that may create schemas in a database can make one named foh, with a view or a
-- function in it that waits for a superuser: so the catalog alone says whether the schema is ours. From here to restore_settings
-- nothing depends on settings of the session that change which objects a name stands for, or how text is read and written.
-- The placeholder is the role for which a migration works (foh-pg migrate --owner), as a literal; NULL otherwise.
DO $foh$
DECLARE
    -- Until the path is pinned a name may stand for somebody else's type.
    schema pg_catalog.record;
    wanted pg_catalog.name := {owner};
    problem pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('foh.caller_settings', pg_catalog.jsonb_build_object(
                'search_path', pg_catalog.current_setting('search_path'),
                'standard_conforming_strings', pg_catalog.current_setting('standard_conforming_strings'),
                'quote_all_identifiers', pg_catalog.current_setting('quote_all_identifiers'),
                'extra_float_digits', pg_catalog.current_setting('extra_float_digits'),
                'check_function_bodies', pg_catalog.current_setting('check_function_bodies'))::pg_catalog.text, true),
            pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
            pg_catalog.set_config('standard_conforming_strings', 'on', true),
            pg_catalog.set_config('quote_all_identifiers', 'off', true),
            pg_catalog.set_config('extra_float_digits', '1', true),
            -- A function may call one that is made later.
            pg_catalog.set_config('check_function_bodies', 'off', true);
    PERFORM set_config('foh.installed', 'no', true);
    IF wanted IS NOT NULL AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = wanted) THEN
        RAISE EXCEPTION 'there is no role %', quote_ident(wanted) USING ERRCODE = 'FH001', HINT = 'Name the role that owns the tables of the application.';
    -- PostgreSQL 15, which the step check_pgvector refuses, does not know the right SET.
    ELSIF NOT (pg_has_role(wanted, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) AND pg_has_role(wanted, 'USAGE')) THEN
        RAISE EXCEPTION '% may not act for role %', quote_ident(current_user), quote_ident(wanted)
            USING ERRCODE = 'FH001', HINT = format('Connect as %I, or let a superuser GRANT %1$I TO %I.', wanted, current_user);
    END IF;
    SELECT n.oid, n.nspowner AS owner, r.rolname, r.rolsuper INTO schema
    FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE n.nspname = 'foh';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- SET ROLE to a plain role does not protect a superuser: a function can reset the role.
    IF NOT schema.rolsuper AND wanted IS DISTINCT FROM schema.rolname
       AND EXISTS (SELECT FROM pg_roles r WHERE r.rolname IN (session_user, current_user) AND r.rolsuper) THEN
        RAISE EXCEPTION 'schema foh of database % belongs to role %, and what it holds would run with the rights of a superuser',
            quote_ident(current_database()), quote_ident(schema.rolname)
            USING ERRCODE = 'FH001', HINT = format('Connect as %I; a superuser may run foh-pg migrate --owner %1$I, and nothing else.', schema.rolname);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relname = 'alembic_version') THEN
        -- Judged later, when something is to be installed there; nothing in it is read.
        RETURN;
    END IF;
    -- A migration reads these tables with rights that the owner of the schema may not have, so that role must not change them meanwhile.
    IF wanted IS NOT NULL THEN
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'a migration for another role needs isolation level READ COMMITTED, and this transaction has %', upper(current_setting('transaction_isolation'))
                USING ERRCODE = 'FH001', HINT = 'An older snapshot does not show what is in the schema now.';
        END IF;
        FOR problem IN SELECT c.oid::regclass FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relname IN ('alembic_version', 'code') AND c.relkind = 'r' LOOP
            EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', problem);
        END LOOP;
    END IF;
    SELECT min(o.found) INTO problem FROM (
        SELECT format('foh.%I ', c.relname) || CASE
            WHEN c.relkind <> 'r' THEN 'is not a table'
            WHEN c.relpersistence <> 'p' THEN 'is not permanent'
            WHEN EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid) THEN 'has a rule'
            WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid) THEN 'has a trigger'
            WHEN c.relrowsecurity OR EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid) THEN 'has row-level security'
            WHEN EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN 'takes part in inheritance'
            WHEN EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND (a.atthasdef
                         OR (a.attname, a.atttypid::regtype::text) NOT IN (('version_num', 'character varying'), ('digest', 'text'), ('version', 'text')))) THEN 'has other columns'
            -- The planner computes what is constant in an expression with the rights of the role that reads the table.
            WHEN EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL)) THEN 'has an index with an expression'
            WHEN EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c') THEN 'has a CHECK constraint'
            WHEN EXISTS (SELECT FROM pg_statistic_ext e WHERE e.stxrelid = c.oid) THEN 'has statistics'
        END AS found
        FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relname IN ('alembic_version', 'code')
        UNION ALL
        SELECT 'foh.code is missing' WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relname = 'code')
        UNION ALL
        SELECT format('foh.%I belongs to %I', c.relname, pg_get_userbyid(c.relowner)) FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relowner <> schema.owner
        UNION ALL
        SELECT format('function foh.%I belongs to %I', p.proname, pg_get_userbyid(p.proowner)) FROM pg_proc p WHERE p.pronamespace = schema.oid AND p.proowner <> schema.owner
    ) o;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'database % has a schema foh that foh_pg did not make, or that was changed since: %',
            quote_ident(current_database()), problem
            USING ERRCODE = 'FH001', HINT = 'Nothing in it was read. Find out who made it; foh_pg needs the name of the schema.';
    END IF;
    PERFORM set_config('foh.installed', 'yes', true);
END
$foh$;

-- foh: step restore_settings
-- Puts back the settings that trust changed: the transaction may belong to an application, which goes on with it.
SELECT pg_catalog.set_config(s.key, s.value, true) FROM pg_catalog.jsonb_each_text(pg_catalog.current_setting('foh.caller_settings')::pg_catalog.jsonb) s;
-- And the settings of Citus that lock changed, where it did.
SELECT pg_catalog.set_config('citus.enable_ddl_propagation', pg_catalog.split_part(s.was, ' ', 1), true),
       pg_catalog.set_config('citus.override_table_visibility', pg_catalog.split_part(s.was, ' ', 2), true),
       pg_catalog.set_config('foh.caller_citus', '', true)
FROM (SELECT pg_catalog.current_setting('foh.caller_citus', true) AS was) s WHERE s.was OPERATOR(pg_catalog.<>) ''::pg_catalog.text;
