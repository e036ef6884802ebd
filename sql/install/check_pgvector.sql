-- The tables and functions that are installed next use pgvector's types.
DO $foh$
DECLARE
    found text := (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector');
BEGIN
    IF pg_catalog.current_setting('server_version_num')::int < 160000 THEN
        RAISE WARNING 'foh_pg needs PostgreSQL 16 or newer and pgvector 0.7 or newer: PostgreSQL % is not tested', pg_catalog.current_setting('server_version');
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION 'the extension pgvector is not installed in database %',
            pg_catalog.quote_ident(pg_catalog.current_database())
            USING ERRCODE = 'FH001', HINT = 'CREATE EXTENSION vector; (in any schema), then migrate again.';
    END IF;
    IF pg_catalog.string_to_array(pg_catalog.substring(found, '^\d+\.\d+'), '.')::int[] < ARRAY[0, 7] THEN
        RAISE EXCEPTION 'pgvector % is too old: foh_pg needs PostgreSQL 16 or newer and pgvector 0.7 or newer', found
            USING ERRCODE = 'FH001', HINT = 'Install a newer pgvector, then ALTER EXTENSION vector UPDATE;';
    END IF;
END
$foh$;
