-- The keys that wait in one shard of the inbox, for who may search: nobody else may read the inbox. Null where there is a marker
-- among them that makes the whole table be read again.
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
