-- The trigger of the table that holds the labels: notes the keys of the source whose labels changed. It reads no row of the
-- source: an embedding that another transaction is writing cannot be seen here, and an entry made of the old one would hide
-- the new one. Searches pass over these entries; the next update encodes the rows with their labels.
CREATE OR REPLACE FUNCTION {capture_labels}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET row_security = on
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    intact boolean := {intact}(TG_RELID);
BEGIN
    IF intact IS NULL THEN
        -- Either the index is gone, or it was created after this transaction took its snapshot: then an entry in the stream
        -- makes the next update read the whole source.
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
            INSERT INTO {stream} (key, op, version, center, fresh)
            SELECT t.key, 'l', 0, 2147483647, true
            FROM (SELECT NEW.{labels_key} AS key WHERE TG_OP <> 'DELETE' UNION SELECT OLD.{labels_key} WHERE TG_OP <> 'INSERT') t
            WHERE t.key IS NOT NULL;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {stream} (key, op, version, center, fresh)
        SELECT DISTINCT n.{labels_key}, 'l'::"char", 0, 2147483647, true FROM new_rows n WHERE n.{labels_key} IS NOT NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, version, center, fresh)
        SELECT DISTINCT o.{labels_key}, 'l'::"char", 0, 2147483647, true FROM old_rows o WHERE o.{labels_key} IS NOT NULL;
    ELSE
        INSERT INTO {stream} (key, op, version, center, fresh)
        SELECT t.key, 'l', 0, 2147483647, true
        FROM (SELECT a.key FROM (SELECT n.{labels_key} AS key, n.{labels} FROM new_rows n EXCEPT ALL
                                 SELECT o.{labels_key}, o.{labels} FROM old_rows o) a WHERE a.key IS NOT NULL
              UNION
              SELECT b.key FROM (SELECT o.{labels_key} AS key, o.{labels} FROM old_rows o EXCEPT ALL
                                 SELECT n.{labels_key}, n.{labels} FROM new_rows n) b WHERE b.key IS NOT NULL) t;
    END IF;
    RETURN NULL;
END
$body$;
