-- What a table is to Citus: distributed, single_shard, reference or managed (local to the coordinator, and in the metadata of Citus);
-- null for an ordinary table, and where there is no Citus. Only dynamic SQL names the catalog of Citus, which most databases lack.
CREATE OR REPLACE FUNCTION foh._citus_kind(relation oid) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    kind text;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE $sql$
            SELECT CASE WHEN p.partmethod <> 'n' THEN 'distributed' WHEN p.repmodel = 't' THEN 'reference'
                        WHEN p.colocationid <> 0 THEN 'single_shard' ELSE 'managed' END
            FROM pg_dist_partition p WHERE p.logicalrelid = $1 $sql$ INTO kind USING relation;
    END IF;
    RETURN kind;
END
$function$;
