-- Appends what became of these keys. new_keys come from rows just written, old_keys from rows just removed or renamed;
-- each is read again from the source, since another trigger may have changed it meanwhile.
CREATE OR REPLACE FUNCTION {record}(new_keys {key_type}[], old_keys {key_type}[], inserted boolean, deferred boolean) RETURNS void
LANGUAGE plpgsql
AS $body$
BEGIN
    IF deferred THEN
        INSERT INTO {stream} (key, op, version, center)
        SELECT t.key, 'u', 0, 0 FROM unnest(new_keys || old_keys) AS t (key);
        RETURN;
    END IF;
    INSERT INTO {stream} (key, op, version, center, code)
    SELECT t.key,
           -- A new row that cannot be read back (hidden by a policy, say) is queued without a code: nothing is lost.
           CASE WHEN p.code IS NOT NULL OR (t.new AND p.key IS NULL) THEN 'u' ELSE 'd' END::"char",
           CASE WHEN t.new AND p.key IS NULL THEN 0 ELSE (SELECT i.version FROM foh.index i WHERE i.id = {id}) END,
           coalesce(p.center, 0), p.code
    FROM (SELECT n.key, true AS new FROM unnest(new_keys) AS n (key)
          UNION ALL
          SELECT o.key, false FROM unnest(old_keys) AS o (key)) t
    LEFT JOIN {place}(new_keys || old_keys) p ON p.key = t.key
    WHERE NOT (inserted AND p.key IS NOT NULL AND p.code IS NULL);
END
$body$;
