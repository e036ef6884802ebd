-- The trigger of the table that holds the labels: the rows of the source whose labels changed are encoded again.
CREATE OR REPLACE FUNCTION {capture_labels}() RETURNS trigger
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
    keys {key_type}[];
BEGIN
    IF intact IS NULL THEN
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' OR NOT intact THEN
        IF NOT intact THEN
            RAISE WARNING 'foh: % has changed since index % was created or refreshed', TG_RELID::regclass, {name}
                USING HINT = 'Run SELECT foh.refresh(' || quote_literal({name}) || ').';
        END IF;
        INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
    ELSIF TG_LEVEL = 'ROW' THEN
        PERFORM {record}(NULL, ARRAY(SELECT NEW.{labels_key} WHERE TG_OP <> 'DELETE' UNION SELECT OLD.{labels_key} WHERE TG_OP <> 'INSERT'),
                         false, deferred);
    ELSIF TG_OP = 'INSERT' THEN
        FOR keys IN
            SELECT array_agg(t.key) FROM (SELECT d.key, row_number() OVER () - 1 AS at FROM (SELECT DISTINCT {labels_key} AS key FROM new_rows) d
                                          WHERE d.key IS NOT NULL) t GROUP BY t.at / 5000
        LOOP
            PERFORM {record}(NULL, keys, false, deferred);
        END LOOP;
    ELSIF TG_OP = 'DELETE' THEN
        FOR keys IN
            SELECT array_agg(t.key) FROM (SELECT d.key, row_number() OVER () - 1 AS at FROM (SELECT DISTINCT {labels_key} AS key FROM old_rows) d
                                          WHERE d.key IS NOT NULL) t GROUP BY t.at / 5000
        LOOP
            PERFORM {record}(NULL, keys, false, deferred);
        END LOOP;
    ELSE
        FOR keys IN
            SELECT array_agg(t.key) FROM (SELECT d.key, row_number() OVER () - 1 AS at FROM (
                SELECT a.key FROM (SELECT {labels_key} AS key, {labels} FROM new_rows EXCEPT ALL
                                   SELECT {labels_key}, {labels} FROM old_rows) a
                UNION
                SELECT b.key FROM (SELECT {labels_key} AS key, {labels} FROM old_rows EXCEPT ALL
                                   SELECT {labels_key}, {labels} FROM new_rows) b) d
                                          WHERE d.key IS NOT NULL) t GROUP BY t.at / 5000
        LOOP
            PERFORM {record}(NULL, keys, false, deferred);
        END LOOP;
    END IF;
    RETURN NULL;
END
$body$;
