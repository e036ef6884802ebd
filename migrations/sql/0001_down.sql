-- Everything that the migrations made; the version table goes last, with the schema.
DO $foh$
DECLARE
    victim text;
BEGIN
    SELECT string_agg(format('foh.%I', relname), ', ') INTO victim
    FROM pg_class
    WHERE relnamespace = 'foh'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'alembic_version';
    IF victim IS NOT NULL THEN
        EXECUTE 'DROP TABLE ' || victim;
    END IF;

    SELECT string_agg(format('foh.%I', relname), ', ') INTO victim
    FROM pg_class WHERE relnamespace = 'foh'::regnamespace AND relkind = 'S';
    IF victim IS NOT NULL THEN
        EXECUTE 'DROP SEQUENCE ' || victim;
    END IF;

    SELECT string_agg(format('foh.%I', typname), ', ') INTO victim
    FROM pg_type t
    WHERE typnamespace = 'foh'::regnamespace AND typtype IN ('d', 'e', 'r')
       OR typnamespace = 'foh'::regnamespace AND typtype = 'c'
          AND EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c');
    IF victim IS NOT NULL THEN
        EXECUTE 'DROP TYPE ' || victim;
    END IF;
END
$foh$;
