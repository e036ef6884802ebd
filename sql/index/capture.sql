-- The trigger of the source: finds the keys whose key, embedding or labels changed, and records them.
-- The SET clauses pin the plans: a plan cached for one row must also serve a million.
CREATE OR REPLACE FUNCTION {capture}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = on
SET plan_cache_mode = force_generic_plan
SET enable_nestloop = off
SET enable_seqscan = off
AS $body$
DECLARE
    intact boolean := foh._intact({id}, TG_RELID);
    deferred boolean := coalesce(lower(current_setting('foh.defer', true)), '') IN ('on', 'true', 'yes', '1');
    key_column name;
    new_keys {key_type}[];
    old_keys {key_type}[];
BEGIN
    IF intact IS NULL THEN
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
            EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM %s r', {stream_text}, key_column,
                           CASE TG_OP WHEN 'DELETE' THEN 'old_rows' ELSE 'new_rows' END);
            IF TG_OP = 'UPDATE' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM old_rows r',
                               {stream_text}, key_column);
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
            IF NEW.{embedding} IS NULL THEN
                RETURN NULL;
            END IF;
            new_keys := ARRAY[NEW.{key}];
        ELSIF TG_OP = 'DELETE' THEN
            IF OLD.{embedding} IS NULL THEN
                RETURN NULL;
            END IF;
            old_keys := ARRAY[OLD.{key}];
        ELSE
            SELECT CASE WHEN n.{key} <> o.{key} OR {changed} THEN ARRAY[n.{key}] END,
                   CASE WHEN n.{key} <> o.{key} THEN ARRAY[o.{key}] END
            INTO new_keys, old_keys
            FROM (SELECT NEW.*) n, (SELECT OLD.*) o;
            IF new_keys IS NULL THEN
                RETURN NULL;
            END IF;
        END IF;
        PERFORM {record}(new_keys, old_keys, TG_OP = 'INSERT', deferred);
    ELSIF TG_OP = 'INSERT' THEN
        FOR new_keys IN
            SELECT array_agg(t.key) FROM (SELECT n.{key} AS key, row_number() OVER () - 1 AS at FROM new_rows n
                                          WHERE n.{embedding} IS NOT NULL) t GROUP BY t.at / 5000
        LOOP
            PERFORM {record}(new_keys, NULL, true, deferred);
        END LOOP;
    ELSIF TG_OP = 'DELETE' THEN
        FOR old_keys IN
            SELECT array_agg(t.key) FROM (SELECT o.{key} AS key, row_number() OVER () - 1 AS at FROM old_rows o
                                          WHERE o.{embedding} IS NOT NULL) t GROUP BY t.at / 5000
        LOOP
            PERFORM {record}(NULL, old_keys, false, deferred);
        END LOOP;
    ELSE
        FOR new_keys, old_keys IN
            SELECT array_agg(t.new_key) FILTER (WHERE t.new_key IS NOT NULL), array_agg(t.old_key) FILTER (WHERE t.new_key IS NULL)
            FROM (SELECT n.{key} AS new_key, o.{key} AS old_key, row_number() OVER () - 1 AS at
                  FROM new_rows n FULL JOIN old_rows o ON o.{key} = n.{key}
                  WHERE n.{key} IS NULL OR o.{key} IS NULL OR {changed}) t
            GROUP BY t.at / 5000
        LOOP
            PERFORM {record}(new_keys, old_keys, false, deferred);
        END LOOP;
    END IF;
    RETURN NULL;
END
$body$;
