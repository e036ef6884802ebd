-- Puts back what foh._begin_spread changed.
CREATE OR REPLACE FUNCTION foh._end_spread(was text[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM set_config('role', was[1], true), set_config('citus.enable_ddl_propagation', was[2], true),
            set_config('citus.enable_unsafe_triggers', was[3], true), set_config('citus.multi_shard_modify_mode', was[4], true);
END
$function$;
