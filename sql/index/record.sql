-- The stream entry of one key: what became of its row, read again from the source, since another trigger may have
-- changed it meanwhile. written: the key comes from a row just written, not from one just removed or renamed.
-- A plain SQL function, so that it is inlined, as {place} in it is.
CREATE OR REPLACE FUNCTION {record}(key {key_type}, written boolean, deferred boolean)
RETURNS TABLE (op "char", version bigint, center int, code bit, fresh boolean)
LANGUAGE sql STABLE
AS $body$
    SELECT CASE WHEN t.code IS NOT NULL OR t.unknown THEN 'u' ELSE 'd' END::"char",
           CASE WHEN t.unknown THEN 0 ELSE (SELECT i.version FROM foh.index i WHERE i.id = {id}) END,
           coalesce(t.center, 0), t.code,
           -- In the snapshot that the version is read in. A transaction that keeps an older one does not see what the key has
           -- been through; one that is serializable would have to fail for the look.
           -- OFFSET 0: a lookup for each key, never all keys at once.
           CASE WHEN t.code IS NOT NULL AND current_setting('transaction_isolation') LIKE 'read %'
                THEN NOT EXISTS (SELECT FROM {item} i WHERE i.key = $1{our_collate} OFFSET 0)
                     AND NOT EXISTS (SELECT FROM {stream} e WHERE e.key = $1{our_collate} OFFSET 0)
                ELSE false END
    FROM (
        -- A written row that cannot be read back (hidden by a policy, say) is queued without a code: nothing is lost.
        SELECT p.key IS NULL AND ($2 OR $3) AS unknown, p.center, p.code
        FROM (VALUES (1)) AS one LEFT JOIN {place}(CASE WHEN NOT $3 THEN ARRAY[$1] END) p ON true
        OFFSET 0) t
$body$;
