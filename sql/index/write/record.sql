-- The stream entry of one key and its row; x is null where the row is gone or cannot be indexed. first: the key may be new to
-- the index. A far row has an entry without bits or home, so that searches read the row itself. A plain SQL function, so that it is
-- inlined, as place in it is.
CREATE OR REPLACE FUNCTION {record}(key {key_type}, x {vector}.vector, labels text[], first boolean)
RETURNS TABLE (op "char", version bigint, center int, geometry bit, marks bit, fresh boolean)
LANGUAGE sql STABLE
AS $body$
    SELECT CASE WHEN $2 IS NULL THEN 'd' ELSE 'u' END::"char", (SELECT i.version FROM foh.index i WHERE i.id = {id}),
           coalesce(p.center, CASE WHEN $2 IS NULL THEN 2147483647 ELSE 0 END), p.geometry, p.marks,
           -- Looked up in the snapshot that the version is read in. A transaction that keeps an older snapshot does not see what became
           -- of the key, and under SERIALIZABLE this lookup could abort the writer, so there the entry is not marked fresh.
           -- OFFSET 0: a lookup for each key, never all keys at once.
           CASE WHEN $4 AND p.center IS NOT NULL AND current_setting('transaction_isolation') LIKE 'read %'
                THEN NOT EXISTS (SELECT FROM {item} i WHERE i.key = $1{our_collate} OFFSET 0)
                     AND NOT EXISTS (SELECT FROM {stream} e WHERE e.key = $1{our_collate} OFFSET 0)
                ELSE false END
    FROM (SELECT CASE WHEN {vector}.vector_norm($2) <= {longest} THEN $2 END AS x OFFSET 0) near LEFT JOIN LATERAL {place}(near.x, $3) p ON near.x IS NOT NULL
$body$;
