-- The keys that wait in some shards of the inbox and are nearest to a query by the vectors that were noted, and the shard that each is
-- in, for roles that may search but may not read the inbox. A key comes once for each of its entries.
-- Keys that were noted without a vector come first. cut: more keys wait, none of which was noted at a distance below reach. resync: one
-- of the entries says that the whole table must be read again, or too many keys are without a vector.
CREATE OR REPLACE FUNCTION {waiting}(shards bigint[], inboxes bigint[], query {vector}.vector, wanted bigint,
                                     OUT keys {key_type}[], OUT homes bigint[], OUT cut boolean, OUT reach float8, OUT resync boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = on
SET jit = off
AS $body$
DECLARE
    parts constant text := (SELECT string_agg(format('SELECT i.key, i.op, i.x, %s::bigint AS home FROM %I.%I i', p.shard, {schema_text}, {inbox_name} || '_' || p.inbox), ' UNION ALL ')
                            FROM (SELECT unnest(shards) AS shard, unnest(inboxes) AS inbox) p);
BEGIN
    EXECUTE $sql$
        SELECT array_agg(e.key), array_agg(e.home), count(*) >= $2, max(e.distance), coalesce(bool_or(e.op <> 'n'), false) OR count(*) - count(e.distance) >= $2
        FROM (SELECT i.key, i.home, i.op, i.x OPERATOR({vector}.{query_operator}) $1 AS distance FROM ($sql$ || parts || $sql$) i
              WHERE i.op <> 'd' ORDER BY 4 NULLS FIRST LIMIT $2) e$sql$
    INTO keys, homes, cut, reach, resync USING {unit}(query){center_cast}, wanted;
    reach := {noted_distance};
END
$body$;
