-- What revision 0003 adds to tables of an earlier installation, and the functions that it replaces with others.
DO $foh$
BEGIN
    -- Most of it is there already in a new installation, which is nothing to talk about.
    PERFORM set_config('foh.caller_client_min_messages', current_setting('client_min_messages'), true);
    PERFORM set_config('client_min_messages', 'warning', true);
    ALTER TABLE foh.index ADD COLUMN IF NOT EXISTS stream regclass;
    UPDATE foh.index SET stream = format('foh.%I', name || '_stream')::regclass WHERE stream IS NULL;
    CREATE TABLE IF NOT EXISTS foh.claim (
        source      oid NOT NULL,
        role        name NOT NULL DEFAULT current_user,
        transaction xid8 NOT NULL DEFAULT pg_current_xact_id()
    );
    CREATE TABLE IF NOT EXISTS foh.updating (
        index int PRIMARY KEY,
        pid   int,
        key   bigint,
        role  name
    );
    INSERT INTO foh.updating (index) SELECT i.id FROM foh.index i ON CONFLICT DO NOTHING;
    DROP VIEW IF EXISTS foh.index_stat;
    DROP FUNCTION IF EXISTS foh._allow_reading(regclass, name[]), foh._forbid_reading(foh.index, regclass), foh._grant_ownership(name, boolean),
        foh._reader_functions(foh.index), foh._set_status(int, text), foh._create_objects(foh.index, name), foh._drop_objects(foh.index),
        foh._replace_index(foh.index, foh.index);
    PERFORM set_config('client_min_messages', current_setting('foh.caller_client_min_messages'), true);
END
$foh$;
