SELECT array_agg(r.key), array_agg(r.distance), array_agg(r.lean) INTO keys, distances, leans
        FROM (WITH found AS MATERIALIZED ({found}),
              -- The ten nearest rows with labels vote: the first has four votes, the next two have two each, the others one.
              -- For each bit of the signature, ones, twos, fours and eights are the binary digits of its number of votes.
              -- Signatures are added three at a time: the sum is a # b # c, the carry is the majority of the three.
              votes AS (
                  SELECT v.votes, v.ones, v.twos, v.fours, v.eights,
                         bit_count(v.ones) + 2 * bit_count(v.twos) + 4 * bit_count(v.fours) + 8 * bit_count(v.eights) AS given,
                         -- The sum of squares of the numbers of votes.
                         bit_count(v.ones) + 4 * (bit_count(v.twos) + bit_count(v.ones & v.twos)) + 8 * bit_count(v.ones & v.fours)
                         + 16 * (bit_count(v.fours) + bit_count(v.ones & v.eights) + bit_count(v.twos & v.fours)) + 32 * bit_count(v.twos & v.eights)
                         + 64 * (bit_count(v.eights) + bit_count(v.fours & v.eights)) AS squares
                  FROM (SELECT v.votes, v.ones, v.t # v.l2 # v.l3 AS twos,
                               v.f # v.l1 # ((v.t & v.l2) | (v.l3 & (v.t # v.l2))) AS fours,
                               (v.f & v.l1) | ((v.f # v.l1) & ((v.t & v.l2) | (v.l3 & (v.t # v.l2)))) AS eights
                        FROM (SELECT v.votes, v.l1, v.l2, v.l3, v.ones, v.c1 # v.c2 # v.c3 AS t, (v.c1 & v.c2) | (v.c3 & (v.c1 # v.c2)) AS f
                              FROM (SELECT v.votes, v.l1, v.l2, v.l3, v.c1, v.c2, v.s1 # v.s2 # v.l10 AS ones, (v.s1 & v.s2) | (v.l10 & (v.s1 # v.s2)) AS c3
                                    FROM (SELECT v.votes, v.l1, v.l2, v.l3, v.l4 # v.l5 # v.l6 AS s1, (v.l4 & v.l5) | (v.l6 & (v.l4 # v.l5)) AS c1,
                                                 v.l7 # v.l8 # v.l9 AS s2, (v.l7 & v.l8) | (v.l9 & (v.l7 # v.l8)) AS c2, v.l10
                                          FROM (SELECT (greatest(v.voters, 1) + least(v.voters, 3) + 2 * least(v.voters, 1))::float8 AS votes,
                                                       v.l[1] AS l1, v.l[2] AS l2, v.l[3] AS l3, v.l[4] AS l4, v.l[5] AS l5,
                                                       v.l[6] AS l6, v.l[7] AS l7, v.l[8] AS l8, v.l[9] AS l9, v.l[10] AS l10
                                                FROM (SELECT count(*) AS voters, array_agg(v.labels) || array_fill({mark_zeros}, ARRAY[10]) AS l
                                                      FROM (SELECT f.marks & {signature_mask} AS labels FROM found f
                                                            WHERE bit_count(f.marks & {signature_mask}) > 0 LIMIT 10) v) v
                                                OFFSET 0) v OFFSET 0) v OFFSET 0) v OFFSET 0) v OFFSET 0) v OFFSET 0)
              SELECT e.key, e.distance, e.lean
              FROM (SELECT f.key, f.distance,
                           weight_code * ((f.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}
                           - weight_votes * CASE
                               -- A row without labels gets the mean share of votes over all labels of all voters.
                               WHEN bit_count(f.marks & {signature_mask}) = 0 THEN v.squares / (v.votes * greatest(v.given, 1))
                               -- The share of the votes for the labels of the row. A voter with several of them counts for each, so the
                               -- share is capped at 1. Two strings share half of the bits of both less those that differ, and to count
                               -- what differs is cheaper than to make the string of what they share.
                               ELSE least(1, (15 * bit_count(f.marks) + v.given
                                              - (f.marks OPERATOR({vector}.<~>) v.ones) - 2 * (f.marks OPERATOR({vector}.<~>) v.twos)
                                              - 4 * (f.marks OPERATOR({vector}.<~>) v.fours) - 8 * (f.marks OPERATOR({vector}.<~>) v.eights))
                                             / (2 * v.votes)) END AS lean
                    FROM found f CROSS JOIN votes v OFFSET 0) e
              ORDER BY e.distance * {bit_distance} + e.lean LIMIT wanted) r;
