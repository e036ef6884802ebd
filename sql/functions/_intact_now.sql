-- Whether the source of an index is as it was recorded. VOLATILE, so that it sees what is committed by now. Where a transaction sees its tables as of an earlier time, false: then
-- every search looks for itself.
CREATE OR REPLACE FUNCTION foh._intact_now(index int, source regclass) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN current_setting('transaction_isolation') LIKE 'read %' AND EXISTS (
        SELECT FROM foh.index i
        WHERE i.id = _intact_now.index AND i.source = _intact_now.source AND i.source_oid = i.source AND to_regclass(i.source_name) = i.source
          AND 2 = (SELECT count(*) FROM pg_attribute a
                   WHERE a.attrelid = i.source AND NOT a.attisdropped
                     AND (a.attnum = i.key_attnum AND a.attname = i.key AND a.atttypid = i.key_type
                          OR a.attnum = i.embedding_attnum AND a.attname = i.embedding AND foh._embedding_type(a.atttypid) = i.embedding_type
                             AND a.atttypmod = i.embedding_typmod)));
END
$function$;
