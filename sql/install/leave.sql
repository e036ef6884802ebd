-- After the last statement that was run as the owner of schema foh by another role. Some code runs when a transaction ends, as the role
-- of the session: cursors that are held, and, before PostgreSQL 18, constraint triggers that were deferred. If the owner could have
-- left such a thing behind, the migration is not finished.
DO $foh$
DECLARE
    left_behind pg_catalog.text;
BEGIN
    SELECT pg_catalog.min(t.what) INTO left_behind FROM (
        SELECT pg_catalog.format('the trigger %I of %s can be deferred', g.tgname, g.tgrelid::pg_catalog.regclass) AS what
        FROM pg_catalog.pg_trigger g
        WHERE g.tgdeferrable AND NOT g.tgisinternal AND pg_catalog.current_setting('server_version_num')::int OPERATOR(pg_catalog.<) 180000
        UNION ALL
        SELECT pg_catalog.format('the cursor %I is held', c.name) FROM pg_catalog.pg_cursors c WHERE c.is_holdable) t;
    IF left_behind IS NOT NULL THEN
        RAISE EXCEPTION 'role % cannot migrate for the owner of schema foh: %, and would run with the rights of %',
            pg_catalog.quote_ident(current_user), left_behind, pg_catalog.quote_ident(current_user)
            USING ERRCODE = 'FH001', HINT = 'Connect as the owner of schema foh.';
    END IF;
    PERFORM pg_catalog.set_config('foh.caller_role', pg_catalog.current_setting('role'), true), pg_catalog.set_config('role', pg_catalog.pg_get_userbyid(n.nspowner), true)
    FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.=) 'foh';
    DROP FUNCTION IF EXISTS foh._as_owner(pg_catalog.text);
    PERFORM pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true);
END
$foh$;
