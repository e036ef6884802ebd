SELECT array_agg(r.key), array_agg(r.distance), array_agg(r.lean) INTO keys, distances, leans
        FROM (WITH found AS MATERIALIZED ({found}),
              -- The nearest seven rows vote. For each bit of the signature, ones, twos and fours are the binary digits of the
              -- number of rows that have it. Signatures are added three at a time: the sum is a # b # c, the carry is the
              -- majority of the three. voices: how many of the seven rows have labels.
              votes AS (
                  SELECT v.voices, v.ones, v.twos, v.fours,
                         -- What a row without labels gets: the mean share of votes over all labels of all voters, which is the
                         -- sum of squares over the sum.
                         (bit_count(v.ones) + 4 * bit_count(v.twos) + 16 * bit_count(v.fours)
                          + 4 * bit_count(v.ones & v.twos) + 8 * bit_count(v.ones & v.fours) + 16 * bit_count(v.twos & v.fours))
                         / (v.voices * greatest(bit_count(v.ones) + 2 * bit_count(v.twos) + 4 * bit_count(v.fours), 1)) AS unknown
                  FROM (SELECT v.voices, v.ones & {signature_mask} AS ones, (v.c1 # v.c2 # v.c3) & {signature_mask} AS twos,
                               ((v.c1 & v.c2) | (v.c3 & (v.c1 # v.c2))) & {signature_mask} AS fours
                        FROM (SELECT v.voices, v.c1, v.c2, v.s1 # v.s2 # v.m7 AS ones, (v.s1 & v.s2) | (v.m7 & (v.s1 # v.s2)) AS c3
                              FROM (SELECT v.voices, v.m1 # v.m2 # v.m3 AS s1, (v.m1 & v.m2) | (v.m3 & (v.m1 # v.m2)) AS c1,
                                           v.m4 # v.m5 # v.m6 AS s2, (v.m4 & v.m5) | (v.m6 & (v.m4 # v.m5)) AS c2, v.m7
                                    FROM (SELECT greatest(v.voices, 1)::float8 AS voices, coalesce(v.m[1], {mark_zeros}) AS m1, coalesce(v.m[2], {mark_zeros}) AS m2,
                                                 coalesce(v.m[3], {mark_zeros}) AS m3, coalesce(v.m[4], {mark_zeros}) AS m4, coalesce(v.m[5], {mark_zeros}) AS m5,
                                                 coalesce(v.m[6], {mark_zeros}) AS m6, coalesce(v.m[7], {mark_zeros}) AS m7
                                          FROM (SELECT array_agg(v.marks) AS m, count(*) FILTER (WHERE bit_count(v.marks & {signature_mask}) > 0) AS voices
                                                FROM (SELECT f.marks FROM found f LIMIT 7) v) v OFFSET 0) v OFFSET 0) v OFFSET 0) v OFFSET 0) v OFFSET 0)
              SELECT e.key, e.distance, e.lean
              FROM (SELECT f.key, f.distance,
                           weight_code * ((f.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}
                           -- The share of the voters that have the labels of the row. A voter with several of them counts for
                           -- each, so the share is capped at 1.
                           - weight_votes * CASE WHEN bit_count(f.marks & {signature_mask}) = 0 THEN v.unknown
                                                 ELSE least(1, (bit_count(f.marks & v.ones) + 2 * bit_count(f.marks & v.twos)
                                                                + 4 * bit_count(f.marks & v.fours)) / v.voices) END AS lean
                    FROM found f CROSS JOIN votes v OFFSET 0) e
              ORDER BY e.distance * {bit_distance} + e.lean LIMIT wanted) r;
