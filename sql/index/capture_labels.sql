-- The trigger of the table that holds the labels: the rows of the source whose labels changed are encoded again.
-- It writes no tombstone. A row that it finds missing, or without an embedding, may be there in a transaction that it does
-- not see, whose entry a later tombstone would hide; and a row that is gone has left an entry of its own.
CREATE OR REPLACE FUNCTION {capture_labels}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    intact boolean := {intact}(TG_RELID);
    deferred boolean := coalesce(lower(current_setting('foh.defer', true)), '') IN ('on', 'true', 'yes', '1');
BEGIN
    IF intact IS NULL THEN
        -- The index is gone; or it came after this transaction took its snapshot, and must read what is written here.
        IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        END IF;
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' OR NOT intact THEN
        IF NOT intact THEN
            RAISE WARNING 'foh: % or the source has changed since index % was created or refreshed', TG_RELID::regclass, {name}
                USING HINT = 'Run SELECT foh.refresh(' || quote_literal({name}) || ').';
        END IF;
        INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
    ELSIF TG_LEVEL = 'ROW' THEN
        IF TG_OP <> 'UPDATE' OR NEW.{labels_key} IS DISTINCT FROM OLD.{labels_key} OR NEW.{labels} IS DISTINCT FROM OLD.{labels} THEN
            INSERT INTO {stream} (key, op, version, center, code)
            SELECT t.key, r.op, r.version, r.center, r.code
            FROM (SELECT NEW.{labels_key} AS key WHERE TG_OP <> 'DELETE' UNION SELECT OLD.{labels_key} WHERE TG_OP <> 'INSERT') t,
                 LATERAL {record}(t.key, false, deferred) r
            WHERE t.key IS NOT NULL AND r.op = 'u';
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {stream} (key, op, version, center, code)
        SELECT t.key, r.op, r.version, r.center, r.code
        FROM (SELECT DISTINCT n.{labels_key} AS key FROM new_rows n WHERE n.{labels_key} IS NOT NULL) t,
             LATERAL {record}(t.key, false, deferred) r
        WHERE r.op = 'u';
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, version, center, code)
        SELECT t.key, r.op, r.version, r.center, r.code
        FROM (SELECT DISTINCT o.{labels_key} AS key FROM old_rows o WHERE o.{labels_key} IS NOT NULL) t,
             LATERAL {record}(t.key, false, deferred) r
        WHERE r.op = 'u';
    ELSE
        INSERT INTO {stream} (key, op, version, center, code)
        SELECT t.key, r.op, r.version, r.center, r.code
        FROM (SELECT a.key FROM (SELECT n.{labels_key} AS key, n.{labels} FROM new_rows n EXCEPT ALL
                                 SELECT o.{labels_key}, o.{labels} FROM old_rows o) a WHERE a.key IS NOT NULL
              UNION
              SELECT b.key FROM (SELECT o.{labels_key} AS key, o.{labels} FROM old_rows o EXCEPT ALL
                                 SELECT n.{labels_key}, n.{labels} FROM new_rows n) b WHERE b.key IS NOT NULL) t,
             LATERAL {record}(t.key, false, deferred) r
        WHERE r.op = 'u';
    END IF;
    RETURN NULL;
END
$body$;
