-- The keys that wait in one shard of the inbox, for roles that may search but may not read the inbox. Null where one of the
-- entries is a marker that the whole table must be read again.
CREATE OR REPLACE FUNCTION {waiting}(shard bigint) RETURNS {key_type}[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
    keys {key_type}[];
    marked boolean;
BEGIN
    EXECUTE format('SELECT array_agg(DISTINCT i.key), coalesce(bool_or(i.op <> ''n''), false) FROM %I.%I i', {schema_text}, {inbox_name} || '_' || shard)
    INTO keys, marked;
    RETURN CASE WHEN NOT marked THEN coalesce(keys, '{}') END;
END
$body$;
