-- Where the table is distributed: makes the table of its shards. True where it was not there.
CREATE OR REPLACE FUNCTION foh._make_shard_table(names jsonb) RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT (names ->> 'distributed')::boolean OR to_regclass(names ->> 'shard') IS NOT NULL THEN
        RETURN false;
    END IF;
    -- inbox: the shard of the inbox that lies beside; token: a key that leads there.
    EXECUTE foh._render('CREATE TABLE {shard} (shard bigint PRIMARY KEY, inbox bigint NOT NULL, token {key_type} NOT NULL)', names);
    RETURN true;
END
$function$;
