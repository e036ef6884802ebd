-- The role that an index belongs to: the owner of its table, or of its functions once the table is gone.
CREATE OR REPLACE FUNCTION foh._source_owner(i foh.index) RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce((SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = i.source), foh._acting_role(i.name))
$function$;
