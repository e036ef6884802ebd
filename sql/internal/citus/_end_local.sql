-- Puts back the settings that foh._begin_local changed.
CREATE OR REPLACE FUNCTION foh._end_local(was text[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF was IS NOT NULL THEN
        PERFORM set_config('citus.enable_ddl_propagation', was[1], true), set_config('citus.override_table_visibility', was[2], true);
    END IF;
END
$function$;
