-- Follows what became of the partitions of an index since the last call. TRUNCATE, DETACH and DROP of a partition and ATTACH of one that
-- has rows fire no trigger of the table. What may have changed is queued; returns how many entries that made, or null where all
-- partitions are what they were. Logical replication truncates a partitioned table in this way, partition by partition.
CREATE OR REPLACE FUNCTION foh._follow(index int) RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
    before jsonb;
    -- Read before the rows are: a change that commits in between is found by the next call, too.
    present jsonb;
    r record;
    queued bigint := 0;
    n bigint;
BEGIN
    SELECT x.* INTO i FROM foh.index x WHERE x.id = _follow.index;
    SELECT u.partitions INTO before FROM foh.updating u WHERE u.index = i.id;
    present := foh._leaves(i);
    IF before = present THEN
        RETURN NULL;
    END IF;
    FOR r IN
        SELECT t.name,
               EXISTS (SELECT FROM jsonb_each(b.leaves) b WHERE p.leaves -> b.key IS DISTINCT FROM b.value) AS lost,
               -- A partition that is empty now has held no row that no trigger saw.
               ARRAY(SELECT p.key::oid FROM jsonb_each(p.leaves) p WHERE NOT b.leaves ? p.key AND pg_relation_size(p.key::oid) > 0) AS attached
        FROM (VALUES ('source', i.source::oid), ('labels', i.labels_from::oid)) AS t (name, oid),
             LATERAL (SELECT before -> t.name AS leaves) b, LATERAL (SELECT present -> t.name AS leaves) p
        -- In a restored database, and where an earlier version made the index, there is nothing to compare with.
        WHERE b.leaves ? t.oid::text AND p.leaves ? t.oid::text
    LOOP
        IF r.name = 'source' AND (r.lost OR r.attached <> '{}') THEN
            EXECUTE format('SELECT foh.%I($1, $2)', i.name || '_follow') INTO n USING r.lost, r.attached;
            queued := queued + n;
        ELSIF r.lost OR r.attached <> '{}' THEN
            -- As after TRUNCATE of the whole table of labels: which rows had these labels, nobody knows.
            EXECUTE format('INSERT INTO foh.%I (op, version, center) VALUES (''r'', 0, 0)', i.name || '_stream');
            queued := queued + 1;
        END IF;
    END LOOP;
    UPDATE foh.updating u SET partitions = present WHERE u.index = i.id;
    RETURN queued;
END
$function$;
