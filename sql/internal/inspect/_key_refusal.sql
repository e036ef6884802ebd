-- Why the primary key of a table cannot be the key of an index; null where it can.
CREATE OR REPLACE FUNCTION foh._key_refusal(relation oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN x.indexrelid IS NULL THEN 'has no primary key: add one, its value is what a search returns'
        WHEN x.indnkeyatts > 1 THEN 'has a primary key of several columns: an index needs a key of one column'
        -- Two transactions could hold one key at once, and the later entry in the stream need not belong to the later row.
        WHEN NOT x.indimmediate THEN 'has a primary key that is DEFERRABLE: an index needs one that is checked at once'
    END
    FROM pg_class c LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisprimary WHERE c.oid = relation
$function$;
