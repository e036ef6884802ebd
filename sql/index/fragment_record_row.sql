IF deferred THEN
        -- Keys alone: whoever reads such an entry looks at the row as it is then.
        IF TG_OP <> 'DELETE' THEN
            INSERT INTO {stream} (key, op, version, center) VALUES (NEW.{key}, 'u', 0, 0);
        END IF;
        IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND NEW.{key} <> OLD.{key} THEN
            INSERT INTO {stream} (key, op, version, center) VALUES (OLD.{key}, 'u', 0, 0);
        END IF;
    ELSIF nested THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
        FROM (SELECT k.key, w.x, w.labels
              FROM (SELECT CASE TG_OP WHEN 'DELETE' THEN OLD.{key} ELSE NEW.{key} END AS key
                    UNION SELECT OLD.{key} WHERE TG_OP = 'UPDATE') k
              LEFT JOIN LATERAL (SELECT {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = k.key OFFSET 0) w ON true OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, false) r;
    ELSIF TG_OP = 'DELETE' THEN
        IF OLD.{embedding} IS NOT NULL THEN
            INSERT INTO {stream} (key, op, version, center)
            SELECT OLD.{key}, 'd', (SELECT i.version FROM foh.index i WHERE i.id = {id}), 2147483647;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        IF NEW.{embedding} IS NOT NULL THEN
            INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh)
            SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh
            FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM (SELECT NEW.*) s OFFSET 0) v,
                 LATERAL {record}(v.key, v.x, v.labels, true) r;
        END IF;
    ELSIF NEW.{key} <> OLD.{key} OR {row_changed} THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
        FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM (SELECT NEW.*) s
              UNION ALL
              SELECT OLD.{key}, NULL, NULL WHERE NEW.{key} <> OLD.{key} OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, false) r;
    END IF;
