-- The functions of an index that read its table with the rights of its owner, and so belong to that role. All others belong to
-- foh's owner: they run with the rights of their caller, or read tables of foh alone, to which nobody else can attach code.
CREATE OR REPLACE FUNCTION foh._owned_by_source() RETURNS text[]
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '{capture,capture_labels,check,repair,follow,explain,rows,unchanged,answer,label_counts,pull,pulled,inbox_stat,inbox_keys,source_rows,record_shards}'::text[]
$function$;
