-- Rows of the source for an updater, which may not read the source itself: the rows of some keys; or, in the order of the key, a
-- page after a key, a sample, or a part of the rows that never train. x is null where the embedding cannot be used; only a
-- page has such rows. The first 32 bits of a digest of the key decide what is held out and the second 32 bits what is
-- sampled, so that one does not depend on the other.
CREATE OR REPLACE FUNCTION {rows}(keys {key_type}[] DEFAULT NULL, after {key_type} DEFAULT NULL, wanted int DEFAULT NULL,
                                  sampled bigint DEFAULT 4294967296, held_out bigint DEFAULT 4294967296)
RETURNS TABLE (key {key_type}, x {vector}.vector, labels text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Where a policy hides rows, reading fails: an updater that did not see them would drop them from the index.
SET row_security = off
SET plan_cache_mode = force_custom_plan
SET work_mem = '64MB'
AS $body$
#variable_conflict use_column
BEGIN
    PERFORM foh._open({tables_text});
    IF keys IS NOT NULL THEN
        RETURN QUERY SELECT v.* FROM (SELECT s.{key} AS key, {to_vector} AS x, {labels_of} AS labels FROM {source} s
                                      WHERE s.{key} = ANY ($1{key_collate}) OFFSET 0) v WHERE v.x IS NOT NULL;
    ELSIF wanted IS NOT NULL AND after IS NULL THEN
        RETURN QUERY SELECT s.{key}, {to_vector}, {labels_of} FROM {source} s
                     WHERE s.{embedding} IS NOT NULL ORDER BY s.{key} LIMIT wanted;
    ELSIF wanted IS NOT NULL THEN
        RETURN QUERY SELECT s.{key}, {to_vector}, {labels_of} FROM {source} s
                     WHERE s.{embedding} IS NOT NULL AND s.{key} > $2{key_collate} ORDER BY s.{key} LIMIT wanted;
    ELSE
        RETURN QUERY SELECT v.key, v.x, v.labels
                     FROM (SELECT s.{key} AS key, {to_vector} AS x, {labels_of} AS labels
                           FROM (SELECT s.*, {key_digest} AS "foh digest" FROM {source} s OFFSET 0) s
                           WHERE ('x' || left(s."foh digest", 8))::bit(32)::bigint < held_out
                             AND ('x' || substr(s."foh digest", 9, 8))::bit(32)::bigint < sampled OFFSET 0) v
                     WHERE v.x IS NOT NULL ORDER BY v.key;
    END IF;
END
$body$;
