IF deferred OR nested THEN
        -- Keys alone: whoever reads such an entry looks at the row as it is then.
        IF deferred THEN
            IF TG_OP <> 'DELETE' THEN
                INSERT INTO {stream} (key, op, version, center) SELECT n.{key}, 'u', 0, 0 FROM new_rows n;
            END IF;
            IF TG_OP <> 'INSERT' THEN
                INSERT INTO {stream} (key, op, version, center) SELECT o.{key}, 'u', 0, 0 FROM old_rows o;
            END IF;
            RETURN NULL;
        END IF;
        IF TG_OP <> 'DELETE' THEN
            INSERT INTO {stream} (key, op, version, center, geometry, marks)
            SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
            FROM (SELECT n.{key} AS key, w.x, w.labels FROM new_rows n LEFT JOIN LATERAL (
                      SELECT {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = n.{key} OFFSET 0) w ON true OFFSET 0) v,
                 LATERAL {record}(v.key, v.x, v.labels, false) r;
        END IF;
        IF TG_OP <> 'INSERT' THEN
            INSERT INTO {stream} (key, op, version, center, geometry, marks)
            SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
            FROM (SELECT o.{key} AS key, w.x, w.labels FROM old_rows o LEFT JOIN LATERAL (
                      SELECT {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = o.{key} OFFSET 0) w ON true OFFSET 0) v,
                 LATERAL {record}(v.key, v.x, v.labels, false) r;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh
        FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels FROM new_rows s WHERE s.{embedding} IS NOT NULL OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, true) r;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, version, center)
        SELECT o.{key}, 'd', (SELECT i.version FROM foh.index i WHERE i.id = {id}), 2147483647 FROM old_rows o WHERE o.{embedding} IS NOT NULL;
    ELSE
        INSERT INTO {stream} (key, op, version, center, geometry, marks)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
        FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels
              FROM new_rows s LEFT JOIN old_rows o ON o.{key} = s.{key} WHERE o.{key} IS NULL OR {changed}
              UNION ALL
              SELECT o.{key}, NULL, NULL FROM old_rows o LEFT JOIN new_rows n ON n.{key} = o.{key} WHERE n.{key} IS NULL
              OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, false) r;
    END IF;
