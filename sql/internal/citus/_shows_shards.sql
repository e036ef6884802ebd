-- A clause for functions that look a table up in pg_class: Citus hides shards there, and some indexes follow one. Empty for all other tables.
CREATE OR REPLACE FUNCTION foh._shows_shards(relation oid) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    hidden boolean := false;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT relation_is_a_known_shard($1)' INTO hidden USING relation::regclass;
    END IF;
    RETURN CASE WHEN hidden THEN E'\nSET citus.override_table_visibility = off' ELSE '' END;
END
$function$;
