-- Moves what waits in the inbox into the stream, in two steps, each a transaction of the caller's: the first writes entries with their bits
-- to the stream, the second, given what the first returned, deletes them from the inbox. Between the two a key is in both, which is
-- harmless; it is never in neither. The rows are read after the entries, so that each is at least as new as its entry. keys_only: leave
-- the bits out, for a caller that reads all rows afterwards anyway.
CREATE OR REPLACE FUNCTION {pull}(most int, keys_only boolean DEFAULT false) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
-- Citus needs the values of the parameters to plan a statement.
SET plan_cache_mode = force_custom_plan
AS $body$
DECLARE
    entries uuid[];
    keys {key_type}[];
    marked boolean;
BEGIN
    PERFORM foh._open({tables_text});
    PERFORM {record_shards}();
    SELECT array_agg(i.entry), array_agg(i.key) FILTER (WHERE i.op IN ('n', 'd')), bool_or(i.op NOT IN ('n', 'd')) INTO entries, keys, marked
    FROM (SELECT i.entry, i.key, i.op FROM {inbox} i LIMIT most) i;
    IF marked THEN
        INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
    END IF;
    IF keys_only THEN
        INSERT INTO {stream} (key, op, version, center) SELECT DISTINCT k.key, 'u'::"char", 0, 0 FROM unnest(keys) AS k (key);
    ELSIF keys IS NOT NULL THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh
        FROM (SELECT k.key, w.x, w.labels FROM (SELECT DISTINCT u.key FROM unnest(keys) AS u (key)) k
              LEFT JOIN {rows}(keys => keys) w ON w.key = k.key{key_collate} OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, true) r;
    END IF;
    RETURN coalesce(entries, '{}');
END
$body$;
