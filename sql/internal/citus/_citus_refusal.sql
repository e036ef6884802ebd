-- Why a table of Citus cannot have an index; null where it can, and for an ordinary table. Rows of such a table are written to its
-- shards, where the triggers of the table itself do not fire.
CREATE OR REPLACE FUNCTION foh._citus_refusal(relation oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE foh._citus_kind(relation)
        WHEN 'distributed' THEN 'is a distributed table of Citus: its rows are written to shards, unseen by triggers; SELECT undistribute_table(...) first'
        WHEN 'single_shard' THEN 'is a distributed table of Citus with a single shard: its rows are written there, unseen by triggers; SELECT undistribute_table(...) first'
        WHEN 'reference' THEN 'has become a reference table of Citus: its rows are written to a copy on each node; drop the index and create it again'
        WHEN 'managed' THEN 'has come into the metadata of Citus: its rows are written to a shard; drop the index and create it again'
    END
$function$;
