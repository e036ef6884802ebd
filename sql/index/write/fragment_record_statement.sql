-- Statement triggers. Reads deferred, nested and the transition tables; sets touched, the keys to record.
    IF deferred OR nested THEN
        IF TG_OP = 'INSERT' THEN
            touched := ARRAY(SELECT n.{key} FROM new_rows n WHERE n.{embedding} IS NOT NULL);
        ELSIF TG_OP = 'DELETE' THEN
            touched := ARRAY(SELECT o.{key} FROM old_rows o WHERE o.{embedding} IS NOT NULL);
        ELSE
            touched := ARRAY(SELECT coalesce(s.{key}, o.{key}) FROM new_rows s FULL JOIN old_rows o ON o.{key} = s.{key}
                             WHERE s.{key} IS NULL OR o.{key} IS NULL OR {changed});
        END IF;
        IF deferred THEN
            -- Keys alone: whoever reads such an entry looks at the row as it is then.
            INSERT INTO {stream} (key, op, version, center) SELECT unnest(touched), 'u', 0, 0;
        ELSE
            INSERT INTO {stream} (key, op, version, center, geometry, marks)
            SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
            FROM (SELECT k.key, w.x, w.labels FROM (SELECT unnest(touched) AS key) k LEFT JOIN LATERAL (
                      SELECT {vector_once} AS x, {labels_of} AS labels FROM {source} s WHERE s.{key} = k.key{key_collate} OFFSET 0) w ON true OFFSET 0) v,
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
        -- A full join, which PostgreSQL never does as a loop in a loop, even where the plan was made for one row.
        INSERT INTO {stream} (key, op, version, center, geometry, marks)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
        FROM (SELECT coalesce(s.{key}, o.{key}) AS key, {vector_once} AS x, {labels_of} AS labels
              FROM new_rows s FULL JOIN old_rows o ON o.{key} = s.{key}
              WHERE s.{key} IS NULL OR o.{key} IS NULL OR {changed} OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, false) r;
    END IF;
