CREATE OR REPLACE FUNCTION foh._refuse_changed(name text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RAISE EXCEPTION 'foh: the table of index % has changed since it was created or refreshed', quote_literal(name)
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('SELECT foh.refresh(%1$L) brings the index in line, or says why it cannot; SELECT foh.drop_index(%1$L), where the table was dropped.', name);
END
$function$;
