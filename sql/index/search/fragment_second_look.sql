SELECT array_agg(r.key), array_agg(r.distance), array_agg(r.lean) INTO keys, distances, leans
        FROM (WITH found AS MATERIALIZED ({found}),
              -- The ten nearest rows with labels vote: the first has four votes, the next two have two each, the others one.
              voters AS (
                  SELECT unnest('{4, 2, 2, 1, 1, 1, 1, 1, 1, 1}'::float8[]) AS votes,
                         unnest(ARRAY(SELECT f.marks & {signature_mask} FROM found f WHERE bit_count(f.marks & {signature_mask}) > 0 LIMIT 10)) AS labels)
              SELECT e.key, e.distance, e.lean
              FROM (SELECT f.key, f.distance,
                           weight_code * ((f.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}::float8
                           - weight_votes * CASE
                               -- A row without labels gets the mean share of votes over all labels of all voters.
                               WHEN bit_count(f.marks & {signature_mask}) = 0
                               THEN (SELECT coalesce(sum(a.votes * b.votes * bit_count(a.labels & b.labels)::float8), 0::float8) FROM voters a CROSS JOIN voters b)
                                    / (v.votes * greatest(v.given, 1::float8))
                               -- The share of the votes for the labels of the row. A voter with several of them counts for each, so the
                               -- share is capped at 1. Two strings share half of the bits of both less those that differ, and to count
                               -- what differs is cheaper than to make the string of what they share.
                               ELSE least(1::float8, ((15 * bit_count(f.marks))::float8 + v.given
                                                      - 4::float8 * (f.marks OPERATOR({vector}.<~>) v.l1)
                                                      - 2::float8 * ((f.marks OPERATOR({vector}.<~>) v.l2) + (f.marks OPERATOR({vector}.<~>) v.l3))
                                                      - (f.marks OPERATOR({vector}.<~>) v.l4) - (f.marks OPERATOR({vector}.<~>) v.l5)
                                                      - (f.marks OPERATOR({vector}.<~>) v.l6) - (f.marks OPERATOR({vector}.<~>) v.l7)
                                                      - (f.marks OPERATOR({vector}.<~>) v.l8) - (f.marks OPERATOR({vector}.<~>) v.l9)
                                                      - (f.marks OPERATOR({vector}.<~>) v.l10)) / (2::float8 * v.votes)) END AS lean
                    FROM found f
                    CROSS JOIN (SELECT v.votes, v.given, v.l[1] AS l1, v.l[2] AS l2, v.l[3] AS l3, v.l[4] AS l4, v.l[5] AS l5,
                                       v.l[6] AS l6, v.l[7] AS l7, v.l[8] AS l8, v.l[9] AS l9, v.l[10] AS l10
                                FROM (SELECT coalesce(sum(v.votes) FILTER (WHERE v.labels IS NOT NULL), 1::float8) AS votes,
                                             -- The votes, counted once for each label of the voter.
                                             coalesce(sum(v.votes * bit_count(v.labels)::float8), 0::float8) AS given,
                                             array_agg(coalesce(v.labels, {mark_zeros})) AS l
                                      FROM voters v) v OFFSET 0) v OFFSET 0) e
              ORDER BY e.distance::float8 * {bit_distance} + e.lean LIMIT wanted) r;
