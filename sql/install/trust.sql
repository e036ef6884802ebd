-- Run before anything in schema foh is read. Whoever may create schemas in a database can make one named foh, with a view or a
-- function in it that waits for a superuser: so the catalog alone says whether the schema is ours. From here to the end of
-- the migration nothing depends on the session's search_path either.
DO $foh$
DECLARE
    -- Until the path is pinned a name may stand for somebody else's type.
    schema pg_catalog.record;
    problem pg_catalog.text;
    foreign_object pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('foh.caller_search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    PERFORM set_config('foh.installed', 'no', true);
    SELECT n.oid, n.nspowner AS owner, r.rolname, r.rolsuper INTO schema
    FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE n.nspname = 'foh';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- SET ROLE to a plain role does not protect a superuser: a function can reset the role.
    IF NOT schema.rolsuper AND schema.rolname <> 'foh_owner'
       AND EXISTS (SELECT FROM pg_roles r WHERE r.rolname IN (session_user, current_user) AND r.rolsuper) THEN
        RAISE EXCEPTION 'schema foh of database % belongs to role %, and what it holds would run with the rights of a superuser',
            quote_ident(current_database()), quote_ident(schema.rolname)
            USING ERRCODE = 'FH001', HINT = format('Connect as %I; or drop the schema, if foh_pg did not make it.', schema.rolname);
    END IF;
    SELECT CASE
        WHEN c.relkind <> 'r' THEN 'foh.alembic_version is not a table'
        WHEN c.relpersistence <> 'p' THEN 'foh.alembic_version is not permanent'
        WHEN EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid) THEN 'foh.alembic_version has a rule'
        WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid) THEN 'foh.alembic_version has a trigger'
        WHEN c.relrowsecurity OR EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid) THEN 'foh.alembic_version has row-level security'
        WHEN EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN 'foh.alembic_version takes part in inheritance'
        WHEN EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                     AND (a.attname <> 'version_num' OR a.atttypid <> 'varchar'::regtype OR a.atthasdef)) THEN 'foh.alembic_version has other columns'
        ELSE ''
    END INTO problem FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relname = 'alembic_version';
    -- A schema without that table is judged later, when something is to be installed there; nothing in it is read.
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT min(o.found) INTO foreign_object FROM (
        SELECT format('foh.%I belongs to %I', c.relname, pg_get_userbyid(c.relowner)) AS found
        FROM pg_class c WHERE c.relnamespace = schema.oid AND c.relowner <> schema.owner
        UNION ALL
        -- Functions of an index that read its table belong to the owner of the table: see foh._owned_by_source.
        SELECT format('function foh.%I belongs to %I', p.proname, pg_get_userbyid(p.proowner))
        FROM pg_proc p WHERE p.pronamespace = schema.oid AND p.proowner <> schema.owner
          AND p.proname !~ '^[^_].*_(capture|capture_labels|check|repair|follow|explain|rows|unchanged|answer|label_counts|pull|pulled|inbox_stat|inbox_keys|source_rows|record_shards)$'
    ) o;
    problem := coalesce(nullif(problem, ''), foreign_object);
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'database % has a schema foh that foh_pg did not make, or that somebody has changed: %',
            quote_ident(current_database()), problem
            USING ERRCODE = 'FH001', HINT = 'Nothing in it was read. Find out who made it; foh_pg needs the name of the schema.';
    END IF;
    PERFORM set_config('foh.installed', 'yes', true);
END
$foh$;
