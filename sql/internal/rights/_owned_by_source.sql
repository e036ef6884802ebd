-- The functions of an index that read its table: they belong to the owner of the table and run with its rights only. All
-- others read nothing but tables of foh, to which nobody else can attach code, and belong to foh's owner.
CREATE OR REPLACE FUNCTION foh._owned_by_source() RETURNS text[]
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '{capture,capture_labels,check,repair,hamming,rows,unchanged,answer,label_counts,pull,pulled,inbox_stat,inbox_keys,source_rows,record_shards}'::text[]
$function$;
