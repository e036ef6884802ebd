-- The trigger of the source: finds the keys whose key, embedding or labels changed, and records them.
-- Encoding, home and version of all rows come from one INSERT ... SELECT, so from one snapshot. The SET clauses pin its
-- plan, which may have been cached for one row and a table of one page: a lookup by key for each row, and no compiler.
CREATE OR REPLACE FUNCTION {capture}() RETURNS trigger
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
    key_column name;
BEGIN
    IF intact IS NULL THEN
        -- The index is gone; or it came after this transaction took its snapshot, and must read what is written here.
        IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        END IF;
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' THEN
        INSERT INTO {stream} (op, version, center) VALUES ('t', 0, 0);
    ELSIF NOT intact THEN
        -- The source no longer looks as the index knew it: queue the keys, warn, never fail the write.
        RAISE WARNING 'foh: % has changed since index % was created or refreshed; rows are queued', TG_RELID::regclass, {name}
            USING HINT = 'Run SELECT foh.refresh(' || quote_literal({name}) || ').';
        key_column := foh._key_column({id});
        IF key_column IS NULL THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        ELSIF TG_LEVEL = 'STATEMENT' THEN
            IF TG_OP <> 'DELETE' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM new_rows r', {stream_text}, key_column);
            END IF;
            IF TG_OP <> 'INSERT' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM old_rows r', {stream_text}, key_column);
            END IF;
        ELSE
            IF TG_OP <> 'DELETE' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) VALUES (($1).%I, ''u'', 0, 0)', {stream_text}, key_column) USING NEW;
            END IF;
            IF TG_OP <> 'INSERT' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) VALUES (($1).%I, ''u'', 0, 0)', {stream_text}, key_column) USING OLD;
            END IF;
        END IF;
    ELSIF TG_LEVEL = 'ROW' THEN
        IF TG_OP = 'INSERT' THEN
            IF NEW.{embedding} IS NOT NULL THEN
                INSERT INTO {stream} (key, op, version, center, code, fresh)
                SELECT NEW.{key}, r.op, r.version, r.center, r.code, r.fresh FROM {record}(NEW.{key}, true, deferred) r;
            END IF;
        ELSIF TG_OP = 'DELETE' THEN
            IF OLD.{embedding} IS NOT NULL THEN
                INSERT INTO {stream} (key, op, version, center, code)
                SELECT OLD.{key}, r.op, r.version, r.center, r.code FROM {record}(OLD.{key}, false, deferred) r;
            END IF;
        ELSIF NEW.{key} <> OLD.{key} OR {row_changed} THEN
            INSERT INTO {stream} (key, op, version, center, code)
            SELECT t.key, r.op, r.version, r.center, r.code
            FROM (SELECT NEW.{key} AS key, true AS written UNION ALL SELECT OLD.{key}, false WHERE NEW.{key} <> OLD.{key}) t,
                 LATERAL {record}(t.key, t.written, deferred) r;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {stream} (key, op, version, center, code, fresh)
        SELECT n.{key}, r.op, r.version, r.center, r.code, r.fresh
        FROM new_rows n, LATERAL {record}(n.{key}, true, deferred) r WHERE n.{embedding} IS NOT NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, version, center, code)
        SELECT o.{key}, r.op, r.version, r.center, r.code
        FROM old_rows o, LATERAL {record}(o.{key}, false, deferred) r WHERE o.{embedding} IS NOT NULL;
    ELSE
        INSERT INTO {stream} (key, op, version, center, code)
        SELECT t.key, r.op, r.version, r.center, r.code
        FROM (SELECT coalesce(n.{key}, o.{key}) AS key, n.{key} IS NOT NULL AS written
              FROM new_rows n FULL JOIN old_rows o ON o.{key} = n.{key}
              WHERE n.{key} IS NULL OR o.{key} IS NULL OR {changed}
              OFFSET 0) t,
             LATERAL {record}(t.key, t.written, deferred) r;
    END IF;
    RETURN NULL;
END
$body$;
