-- The table that an index on this table follows: the table itself; or, of a reference table and of one that is local in the metadata
-- of Citus, the shard of this node, which gets every write, as an ordinary table does.
CREATE OR REPLACE FUNCTION foh._citus_source(relation regclass) RETURNS regclass
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    shard text;
BEGIN
    IF foh._citus_kind(relation) IN ('reference', 'managed') THEN
        -- Citus leaves out the schema public.
        EXECUTE $sql$SELECT CASE c.relnamespace WHEN to_regnamespace('public') THEN 'public.' ELSE '' END || shard_name(s.logicalrelid, s.shardid)
                     FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid WHERE s.logicalrelid = $1$sql$ INTO shard USING relation;
        IF to_regclass(shard) IS NULL THEN
            RAISE EXCEPTION 'foh: % has no copy on this node, on which an index could follow its writes', foh._qualified(relation)
                USING ERRCODE = 'wrong_object_type',
                      HINT = 'Run this on the coordinator, after SELECT citus_set_coordinator_host(...) has put it into the metadata of Citus.';
        END IF;
        RETURN to_regclass(shard);
    END IF;
    RETURN relation;
END
$function$;
