-- Row triggers. Reads deferred and nested; sets touched, the keys to record.
    IF TG_OP = 'INSERT' THEN
        touched := CASE WHEN NEW.{embedding} IS NOT NULL THEN ARRAY[NEW.{key}] END;
    ELSIF TG_OP = 'DELETE' THEN
        touched := CASE WHEN OLD.{embedding} IS NOT NULL THEN ARRAY[OLD.{key}] END;
    ELSIF NEW.{key} <> OLD.{key} THEN
        touched := ARRAY[NEW.{key}, OLD.{key}];
    ELSIF {row_changed} THEN
        touched := ARRAY[NEW.{key}];
    END IF;
    IF touched IS NULL THEN
        RETURN NULL;
    ELSIF deferred THEN
        -- Keys alone: whoever reads such an entry looks at the row as it is then.
        INSERT INTO {stream} (key, op, version, center) SELECT unnest(touched), 'u', 0, 0;
    ELSIF nested THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
        FROM (SELECT k.key, w.x, w.labels FROM (SELECT unnest(touched) AS key) k LEFT JOIN LATERAL (
                  SELECT {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = k.key{key_collate} OFFSET 0) w ON true OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, false) r;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, version, center)
        SELECT OLD.{key}, 'd', (SELECT i.version FROM foh.index i WHERE i.id = {id}), 2147483647;
    ELSE
        INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh
        FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM (SELECT NEW.*) s OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, TG_OP = 'INSERT') r;
        IF TG_OP = 'UPDATE' AND NEW.{key} <> OLD.{key} THEN
            INSERT INTO {stream} (key, op, version, center)
            SELECT OLD.{key}, 'd', (SELECT i.version FROM foh.index i WHERE i.id = {id}), 2147483647;
        END IF;
    END IF;
