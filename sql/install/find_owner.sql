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
    -- As trust.sql found it: a schema that was made since then is not taken for ours.
    IF current_setting('foh.installed') <> 'yes' AND present IS NOT NULL AND EXISTS (
        SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = present
    ) THEN
        RAISE EXCEPTION 'database % has a schema foh that foh_pg did not make', quote_ident(current_database())
            USING ERRCODE = 'FH001', HINT = 'foh_pg needs that name: rename the schema, or use another database.';
    ELSIF present_owner <> owner THEN
        RAISE EXCEPTION 'schema foh belongs to role %, and this migration is for %', quote_ident(present_owner), quote_ident(owner)
            USING ERRCODE = 'FH001', HINT = format('Connect as %I, or run foh-pg migrate --owner %1$I as a role that may act for it.', present_owner);
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
