-- Finds or makes schema foh and its owner, and acts as that owner until leave.sql or the end of the transaction. The owner is a
-- role that cannot log in and has no other rights, so that our SECURITY DEFINER functions can do nothing but our work.
DO $foh$
DECLARE
    set_option constant text := CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 160000
        THEN 'SET' ELSE 'MEMBER' END;
    grant_options constant text := CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 160000
        THEN ' WITH INHERIT TRUE, SET TRUE' ELSE '' END;
    installer constant name := current_user;
    owner name := 'foh_owner';
    present oid;
    present_owner name;
    ours boolean;
    vector_schema name;
BEGIN
    -- A function may call one whose file comes later.
    PERFORM set_config('foh.caller_check_function_bodies', current_setting('check_function_bodies'), true);
    PERFORM set_config('check_function_bodies', 'off', true);
    PERFORM set_config('foh.caller_role', current_setting('role'), true);

    SELECT n.oid, pg_get_userbyid(n.nspowner) INTO present, present_owner FROM pg_namespace n WHERE nspname = 'foh';
    -- As trust.sql found it: a schema that was made since then is not taken for ours.
    ours := current_setting('foh.installed') = 'yes';
    IF present IS NOT NULL AND NOT ours AND EXISTS (
        SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = present
    ) THEN
        RAISE EXCEPTION 'database % has a schema foh that foh_pg did not make', quote_ident(current_database())
            USING ERRCODE = 'FH001', HINT = 'foh_pg needs that name: rename the schema, or use another database.';
    END IF;

    IF ours THEN
        owner := present_owner;
    ELSIF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = owner) THEN
        BEGIN
            CREATE ROLE foh_owner NOLOGIN;
        EXCEPTION
            WHEN insufficient_privilege THEN owner := installer;
            -- Another database of this cluster was faster.
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    IF owner = 'foh_owner' AND EXISTS (SELECT FROM pg_roles WHERE rolname = owner AND (rolsuper OR rolcanlogin)) THEN
        RAISE EXCEPTION 'the role foh_owner may log in or is a superuser, and our functions run with its rights'
            USING ERRCODE = 'FH001', HINT = 'ALTER ROLE foh_owner NOLOGIN NOSUPERUSER; then migrate again.';
    END IF;

    IF NOT (pg_has_role(owner, set_option) AND pg_has_role(owner, 'USAGE')) THEN
        BEGIN
            EXECUTE format('GRANT %I TO %I', owner, installer) || grant_options;
        EXCEPTION
            WHEN unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                IF ours THEN
                    RAISE EXCEPTION 'schema foh belongs to %, and % is no member of it', quote_ident(owner),
                        quote_ident(installer)
                        USING ERRCODE = 'FH001', HINT = format('GRANT %I TO %I; or migrate as its owner.', owner, installer);
                END IF;
                RAISE WARNING '% may not become foh_owner and will own schema foh itself', quote_ident(installer)
                    USING HINT = format('GRANT foh_owner TO %I; before the first migration avoids it.', installer);
                owner := installer;
        END;
    END IF;

    IF present IS NULL THEN
        IF NOT has_database_privilege(current_database(), 'CREATE') THEN
            RAISE EXCEPTION '% may not create a schema in database %', quote_ident(installer),
                quote_ident(current_database())
                USING ERRCODE = 'FH001',
                HINT = format('GRANT CREATE ON DATABASE %I TO %I; or migrate as the owner of the database.',
                    current_database(), installer);
        END IF;
        EXECUTE format('CREATE SCHEMA foh AUTHORIZATION %I', owner);
    ELSIF NOT ours AND present_owner <> owner THEN
        -- An empty schema that an administrator made for us: it keeps its owner where we may not change it.
        BEGIN
            EXECUTE format('ALTER SCHEMA foh OWNER TO %I', owner);
        EXCEPTION
            WHEN insufficient_privilege THEN owner := present_owner;
        END;
    END IF;

    SELECT n.nspname INTO vector_schema
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector';
    -- Granted even where PUBLIC may use the schema: that right is often taken back later.
    IF vector_schema IS NOT NULL THEN
        IF has_schema_privilege(vector_schema, 'USAGE WITH GRANT OPTION') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', vector_schema, owner);
        END IF;
        IF NOT has_schema_privilege(owner, vector_schema, 'USAGE') THEN
            RAISE EXCEPTION 'role % may not use schema %, where pgvector is', quote_ident(owner),
                quote_ident(vector_schema)
                USING ERRCODE = 'FH001', HINT = format('GRANT USAGE ON SCHEMA %I TO %I;', vector_schema, owner);
        END IF;
    END IF;

    PERFORM set_config('role', owner, true);
    REVOKE ALL ON SCHEMA foh FROM PUBLIC;
END
$foh$;
