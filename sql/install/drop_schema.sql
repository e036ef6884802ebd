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
