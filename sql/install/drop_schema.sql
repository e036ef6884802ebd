-- Without CASCADE: an object that somebody else put into the schema stops the removal.
DO $foh$
BEGIN
    -- Some versions of Alembic drop their table themselves when they reach the base, some do not.
    DROP TABLE IF EXISTS foh.alembic_version;
    DROP SCHEMA foh;
END
$foh$;
