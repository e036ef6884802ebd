-- Why a table of Citus cannot have an index; null where it can, and for an ordinary table. An index on a reference table, or on one that is
-- local in the metadata of Citus, follows a shard (see foh._citus_source), so the table itself is met here only where it became one later.
CREATE OR REPLACE FUNCTION foh._citus_refusal(relation oid) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    refusal text;
BEGIN
    CASE foh._citus_kind(relation)
        WHEN 'distributed' THEN
            EXECUTE $sql$
                SELECT CASE
                    WHEN c.relkind = 'p' THEN 'is partitioned and distributed by Citus: writes to a partition would not be seen; SELECT undistribute_table(...) first'
                    WHEN p.partmethod <> 'h' THEN 'is distributed by range or by appending: only tables that are distributed by the hash of their key can have an index'
                    WHEN p.repmodel = 'c' THEN 'has shards in several copies (citus.shard_replication_factor): an index would see each write several times'
                    WHEN length(c.relname) > 50 THEN 'has a name of more than 50 letters: with the number of a shard it is cut off; rename the table'
                    WHEN column_to_column_name(p.logicalrelid, p.partkey) IS DISTINCT FROM
                         (SELECT a.attname::text FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
                          WHERE x.indrelid = p.logicalrelid AND x.indisprimary AND x.indnkeyatts = 1) THEN
                        format('is distributed by %I, which is not its whole primary key: an index needs a key of one column, and the table distributed by it; '
                               'make the id alone the primary key (undistribute_table, ALTER TABLE, create_distributed_table by the id), and filter by the other column',
                               column_to_column_name(p.logicalrelid, p.partkey))
                END
                FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid WHERE p.logicalrelid = $1 $sql$ INTO refusal USING relation;
        WHEN 'single_shard' THEN refusal := 'is a distributed table of Citus with a single shard: its rows are written there, unseen by triggers; SELECT undistribute_table(...) first';
        WHEN 'reference' THEN refusal := 'has become a reference table of Citus: its rows are written to a copy on each node; drop the index and create it again';
        WHEN 'managed' THEN refusal := 'has come into the metadata of Citus: its rows are written to a shard; drop the index and create it again';
        ELSE NULL;
    END CASE;
    RETURN refusal;
END
$function$;
