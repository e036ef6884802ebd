-- Makes the table of shards where the source is distributed. Returns whether it made the table.
CREATE OR REPLACE FUNCTION foh._make_shard_table(names jsonb) RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT (names ->> 'distributed')::boolean OR to_regclass(names ->> 'shard') IS NOT NULL THEN
        RETURN false;
    END IF;
    -- inbox: the shard of the inbox beside this one; token: a key that leads to both; first: the least hash of the keys in them.
    EXECUTE foh._render('CREATE TABLE {shard} (shard bigint PRIMARY KEY, inbox bigint NOT NULL, token {key_type} NOT NULL, first int NOT NULL)', names);
    RETURN true;
END
$function$;
