-- Whether the source of an index is known to be as it was recorded: asked once, when a statement of a search is planned,
-- and so for nothing by every search after it. IMMUTABLE means that much only: PostgreSQL plans the statement anew after
-- every ALTER of the table, whose oid it finds there as a constant.
-- source: as the function of the search was made for; another one in a restored database.
CREATE OR REPLACE FUNCTION foh._intact_in_plan(index int, source regclass) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN foh._intact_now(index, source);
END
$function$;
