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
