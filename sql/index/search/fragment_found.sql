-- Reads query_geometry, centers, truncated, replaced and looked. Returns the nearest keys, as many as looked says. The template has it
          -- twice, each time inside a larger statement: so the keys are never stored in between.
          SELECT e.key, e.distance::int AS distance, e.marks
          FROM ({distinct_open}SELECT u.key, u.marks, u.geometry OPERATOR({vector}.<~>) query_geometry AS distance, 0::bigint AS seq
                FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks
                      FROM {list} l WHERE l.center = ANY (centers) AND truncated = 0) u
                UNION ALL
                -- A lookup for each center. seq + 0: with some statistics the planner would go in by the primary key.
                SELECT t.key, t.marks, t.geometry OPERATOR({vector}.<~>) query_geometry, t.seq
                FROM (SELECT unnest(centers) AS center) c
                CROSS JOIN LATERAL (SELECT t.key, t.marks, t.geometry, t.seq FROM {stream} t
                                    WHERE t.center = c.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t{distinct_close}
                ORDER BY 3 LIMIT looked + CASE WHEN replaced THEN looked / 8 + 16 ELSE 0 END) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE NOT (replaced AND EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND {later} > e.seq AND o.op <> 'l' OFFSET 0))
          LIMIT looked