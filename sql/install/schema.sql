-- What a migration needs before anything is made, and what it does last.

-- foh: step check_pgvector
-- The tables and functions that are installed next use pgvector's types, and functions that PostgreSQL 15 does not have.
DO $foh$
DECLARE
    found text := (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector');
BEGIN
    IF pg_catalog.current_setting('server_version_num')::int / 10000 < {oldest_server} THEN
        RAISE EXCEPTION 'PostgreSQL % is too old: {requirements}', pg_catalog.split_part(pg_catalog.current_setting('server_version'), ' ', 1)
            USING ERRCODE = 'FH001', HINT = 'Upgrade to PostgreSQL {oldest_server} or newer.';
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION 'the extension pgvector is not installed in database %',
            pg_catalog.quote_ident(pg_catalog.current_database())
            USING ERRCODE = 'FH001', HINT = 'CREATE EXTENSION vector; (in any schema) as a superuser or as the administrator of your provider, then migrate again.';
    END IF;
    IF pg_catalog.string_to_array(pg_catalog.substring(found, '^\d+\.\d+'), '.')::int[] < ARRAY[{oldest_pgvector}] THEN
        RAISE EXCEPTION 'pgvector % is too old: {requirements}', found
            USING ERRCODE = 'FH001', HINT = 'Install a newer pgvector, then ALTER EXTENSION vector UPDATE;';
    END IF;
END
$foh$;

-- foh: step find_owner
-- Finds or makes schema foh. It belongs to one role: the one that migrates, or the one that foh-pg migrate --owner names. All our functions
-- that need more than the rights of their caller run as that role.
DO $foh$
DECLARE
    installer constant name := current_user;
    owner constant name := coalesce({owner}, current_user);
    present oid;
    present_owner name;
    vector_schema name;
BEGIN
    SELECT n.oid, pg_get_userbyid(n.nspowner) INTO present, present_owner FROM pg_namespace n WHERE n.nspname = 'foh';
    -- As the step trust found it: a schema that was made since then is not taken for ours.
    IF current_setting('foh.installed') <> 'yes' AND present IS NOT NULL AND EXISTS (
        SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = present
    ) THEN
        RAISE EXCEPTION 'database % has a schema foh that foh_pg did not make', quote_ident(current_database())
            USING ERRCODE = 'FH001', HINT = 'foh_pg needs that name: rename the schema, or use another database.';
    ELSIF present_owner <> owner THEN
        RAISE EXCEPTION 'schema foh belongs to role %, and this migration is for %', quote_ident(present_owner), quote_ident(owner)
            USING ERRCODE = 'FH001', HINT = format('Connect as %I, or run foh-pg migrate --owner %1$I as a role that may act for it. For %2$I it can be installed anew once foh-pg migrate --to base has removed it, with its indexes.', present_owner, owner);
    ELSIF present IS NULL AND NOT has_database_privilege(current_database(), 'CREATE') THEN
        RAISE EXCEPTION '% may not create a schema in database %', quote_ident(installer), quote_ident(current_database())
            USING ERRCODE = 'FH001',
            HINT = format('GRANT CREATE ON DATABASE %I TO %I; or let a superuser run foh-pg migrate --owner %2$I.', current_database(), owner);
    ELSIF present IS NULL THEN
        EXECUTE format('CREATE SCHEMA foh AUTHORIZATION %I', owner);
    END IF;

    SELECT n.nspname INTO vector_schema
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector';
    -- Granted even where PUBLIC may use the schema: that right is often taken back later.
    IF vector_schema IS NOT NULL THEN
        IF owner <> installer AND has_schema_privilege(vector_schema, 'USAGE WITH GRANT OPTION') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', vector_schema, owner);
        END IF;
        IF NOT has_schema_privilege(owner, vector_schema, 'USAGE') THEN
            RAISE EXCEPTION 'role % may not use schema %, where pgvector is', quote_ident(owner),
                quote_ident(vector_schema)
                USING ERRCODE = 'FH001', HINT = format('GRANT USAGE ON SCHEMA %I TO %I;', vector_schema, owner);
        END IF;
    END IF;
END
$foh$;

-- foh: step publications
-- A publication FOR ALL TABLES cannot leave a schema out, so it publishes our tables too.
DO $foh$
DECLARE
    found text := (SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname) FROM pg_publication p WHERE p.puballtables);
BEGIN
    IF found IS NOT NULL THEN
        RAISE WARNING 'publication % is FOR ALL TABLES, and so publishes those of schema foh: a subscriber without them stops applying', found
            USING HINT = 'Publish the schemas of the application instead: CREATE PUBLICATION ... FOR TABLES IN SCHEMA ...; see docs/how-to/replicas.md.';
    END IF;
END
$foh$;

-- foh: step drop_schema
-- As the owner of the schema; NULL stands for the present role. Without CASCADE: an object that somebody else put into the
-- schema stops the removal.
DO $foh$
BEGIN
    PERFORM pg_catalog.set_config('foh.caller_role', pg_catalog.current_setting('role'), true);
    PERFORM pg_catalog.set_config('role', coalesce({owner}, current_user), true);
    -- Some versions of Alembic drop their table themselves when they reach the base, some do not.
    DROP TABLE IF EXISTS foh.alembic_version;
    DROP SCHEMA foh;
    PERFORM pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true);
END
$foh$;
