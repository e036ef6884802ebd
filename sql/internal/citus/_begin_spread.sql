-- Sets the role and the settings under which Citus makes objects on all nodes: as foh's owner, shard after shard. Returns
-- what they were.
CREATE OR REPLACE FUNCTION foh._begin_spread(i foh.index) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was constant text[] := ARRAY[current_setting('role'), current_setting('citus.enable_ddl_propagation'), current_setting('citus.enable_unsafe_triggers'),
                                 current_setting('citus.multi_shard_modify_mode')];
BEGIN
    PERFORM foh._end_spread(ARRAY[was[1], 'on', 'on', 'sequential']);
    RETURN was;
END
$function$;
