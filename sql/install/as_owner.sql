-- For a role that migrates on behalf of the owner of schema foh.

-- foh: step as_owner
-- Runs a statement as the owner of schema foh, for a role that may act for it. The owner may have attached code to what is in the schema,
-- and after SET ROLE that code could go back to the role of the session. Inside a SECURITY DEFINER function it cannot. The function is
-- made again for each statement, since what ran before could have altered it.
-- The code could still leave something in the session that its role runs into later: settings outlive the function that sets them. So
-- the session is compared with what it was. Every name is qualified, since search_path is one of the settings.
DO {outer}
DECLARE
    look constant pg_catalog.text := $look$
        SELECT pg_catalog.jsonb_object_agg(s.what, s.state) FROM (
            SELECT pg_catalog.concat('setting ', name) AS what, setting AS state FROM pg_catalog.pg_settings
            UNION ALL SELECT pg_catalog.concat('setting ', n), pg_catalog.current_setting(n, true)
            FROM pg_catalog.unnest('{foh.caller_settings,foh.caller_citus}'::pg_catalog.text[]) n
            UNION ALL SELECT pg_catalog.concat('prepared statement ', name), prepare_time::pg_catalog.text FROM pg_catalog.pg_prepared_statements
            UNION ALL SELECT pg_catalog.concat('cursor ', name), creation_time::pg_catalog.text FROM pg_catalog.pg_cursors
            UNION ALL SELECT pg_catalog.concat('temporary object ', classid::pg_catalog.regclass, ' ', objid), NULL FROM pg_catalog.pg_depend
            WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass
              AND refobjid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) s
    $look$;
    before pg_catalog.jsonb;
    after pg_catalog.jsonb;
    changed pg_catalog.text;
BEGIN
    EXECUTE look INTO before;
    PERFORM pg_catalog.set_config('foh.caller_role', pg_catalog.current_setting('role'), true), pg_catalog.set_config('role', {owner}, true);
    CREATE OR REPLACE FUNCTION foh._as_owner(statement pg_catalog.text) RETURNS pg_catalog.void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET check_function_bodies = off
    AS 'BEGIN EXECUTE statement; END';
    PERFORM pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true);
    PERFORM foh._as_owner({inner}
{body}
{inner}::pg_catalog.text);
    EXECUTE look INTO after;
    SELECT pg_catalog.min(c.key) INTO changed
    FROM (SELECT * FROM pg_catalog.jsonb_each_text(after) EXCEPT SELECT * FROM pg_catalog.jsonb_each_text(before)) c;
    IF changed IS NOT NULL THEN
        RAISE EXCEPTION 'role % cannot migrate for the owner of schema foh, whose code changes the session: %',
            pg_catalog.quote_ident(current_user), changed USING ERRCODE = 'FH001', HINT = 'Connect as the owner of schema foh.';
    END IF;
-- A prepared statement stays when all else is rolled back.
EXCEPTION WHEN OTHERS OR query_canceled OR assert_failure THEN
    DEALLOCATE ALL;
    RAISE;
END
{outer};

-- foh: step leave
-- After the last statement that was run as the owner of schema foh by another role. Before PostgreSQL 18 what was deferred runs at COMMIT
-- as the role of the session: constraint triggers, and what an exclusion constraint computes. If the owner could have left such a thing
-- behind, the migration is not finished. Foreign keys are checked as the owners of their tables.
DO $foh$
DECLARE
    left_behind pg_catalog.text;
BEGIN
    SELECT pg_catalog.min(pg_catalog.format('the trigger %I of %s', g.tgname, g.tgrelid::pg_catalog.regclass)) INTO left_behind
    FROM pg_catalog.pg_trigger g LEFT JOIN pg_catalog.pg_index x ON x.indexrelid OPERATOR(pg_catalog.=) g.tgconstrindid
    WHERE g.tgdeferrable AND (NOT g.tgisinternal OR x.indexprs IS NOT NULL OR x.indpred IS NOT NULL)
      AND pg_catalog.current_setting('server_version_num')::int OPERATOR(pg_catalog.<) 180000;
    IF left_behind IS NOT NULL THEN
        RAISE EXCEPTION 'role % cannot migrate for the owner of schema foh: % can be deferred, and would run with the rights of %',
            pg_catalog.quote_ident(current_user), left_behind, pg_catalog.quote_ident(current_user)
            USING ERRCODE = 'FH001', HINT = 'Connect as the owner of schema foh.';
    END IF;
    PERFORM pg_catalog.set_config('foh.caller_role', pg_catalog.current_setting('role'), true), pg_catalog.set_config('role', pg_catalog.pg_get_userbyid(n.nspowner), true)
    FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.=) 'foh';
    DROP FUNCTION IF EXISTS foh._as_owner(pg_catalog.text);
    PERFORM pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true);
END
$foh$;
