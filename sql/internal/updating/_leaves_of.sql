-- The partitions of both tables of an index as they are now: what foh._follow compares with what it saw the last time.
CREATE OR REPLACE FUNCTION foh._leaves_of(i foh.index) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_build_object('source', foh._leaves(i.source), 'labels', foh._leaves(i.labels_from))
$function$;
