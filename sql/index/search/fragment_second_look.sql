SELECT array_agg(r.key), array_agg(r.distance), array_agg(r.lean) INTO keys, distances, leans
        FROM (WITH found AS MATERIALIZED ({found}),
              -- The nearest seven rows vote: how many of them have each bit, as a binary number of three digits. Their marks are
              -- added digit by digit, three at a time: the sum is a # b # c, what is carried the majority of the three.
              -- A voter without labels has no voice.
              votes AS (
                  SELECT v.voices, v.ones, v.c1 # v.c2 # v.c3 AS twos, (v.c1 & v.c2) | (v.c3 & (v.c1 # v.c2)) AS fours
                  FROM (SELECT v.voices, v.c1, v.c2, v.s1 # v.s2 # v.m7 AS ones, (v.s1 & v.s2) | (v.m7 & (v.s1 # v.s2)) AS c3
                        FROM (SELECT v.voices, v.m1 # v.m2 # v.m3 AS s1, (v.m1 & v.m2) | (v.m3 & (v.m1 # v.m2)) AS c1,
                                     v.m4 # v.m5 # v.m6 AS s2, (v.m4 & v.m5) | (v.m6 & (v.m4 # v.m5)) AS c2, v.m7
                              FROM (SELECT greatest(v.voices, 1)::float8 AS voices, coalesce(v.m[1], {mark_zeros}) AS m1, coalesce(v.m[2], {mark_zeros}) AS m2,
                                           coalesce(v.m[3], {mark_zeros}) AS m3, coalesce(v.m[4], {mark_zeros}) AS m4, coalesce(v.m[5], {mark_zeros}) AS m5,
                                           coalesce(v.m[6], {mark_zeros}) AS m6, coalesce(v.m[7], {mark_zeros}) AS m7
                                    FROM (SELECT array_agg(v.marks) AS m, count(*) FILTER (WHERE bit_count(v.marks & {signature_mask}) > 0) AS voices
                                          FROM (SELECT f.marks FROM found f LIMIT 7) v) v OFFSET 0) v OFFSET 0) v OFFSET 0) v OFFSET 0),
              -- The chance that one bit at least is the query's is 1 minus the product of (1 - chance) over the bits of a row. So
              -- each bit counts -ln(1 - chance), in steps and in binary, and what a row comes to are four counts of bits.
              -- ctid: the table from end to end, without its index; sequential scans are off for the sake of other tables.
              chances AS (
                  SELECT coalesce(bit_or(b.mask) FILTER (WHERE b.steps & 1 > 0), {mark_zeros}) AS ones,
                         coalesce(bit_or(b.mask) FILTER (WHERE b.steps & 2 > 0), {mark_zeros}) AS twos,
                         coalesce(bit_or(b.mask) FILTER (WHERE b.steps & 4 > 0), {mark_zeros}) AS fours,
                         coalesce(bit_or(b.mask) FILTER (WHERE b.steps & 8 > 0), {mark_zeros}) AS eights,
                         coalesce(sum((1 - exp(-{chance_step} * b.steps)) * b.votes) / nullif(sum(b.votes), 0), 0) AS unknown
                  FROM (SELECT b.mask, b.votes, least(15, floor(ln(greatest(1 - b.chance, 1e-6)) / -{chance_step}))::int AS steps
                        FROM (SELECT b.mask, b.votes, share_linear * coalesce(least(1, greatest(0, b.linear)), 0) + (1 - share_linear) * b.votes AS chance
                              FROM (SELECT b.mask, b.bias - (b.weights OPERATOR({vector}.<#>) projections) * per_length AS linear,
                                           (get_bit(v.ones, b.bit) + 2 * get_bit(v.twos, b.bit) + 4 * get_bit(v.fours, b.bit)) / v.voices AS votes
                                    FROM votes v CROSS JOIN {label_bit} b WHERE b.ctid >= '(0,0)' OFFSET 0) b OFFSET 0) b OFFSET 0) b)
              SELECT e.key, e.distance, e.lean
              FROM (SELECT f.key, f.distance,
                           weight_code * ((f.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}
                           - weight_labels * CASE WHEN bit_count(f.marks & {signature_mask}) = 0 THEN c.unknown
                                                  ELSE 1 - exp(-{chance_step} * (bit_count(f.marks & c.ones) + 2 * bit_count(f.marks & c.twos)
                                                                                 + 4 * bit_count(f.marks & c.fours) + 8 * bit_count(f.marks & c.eights))) END AS lean
                    FROM found f CROSS JOIN chances c OFFSET 0) e
              ORDER BY e.distance * {bit_distance} + e.lean LIMIT wanted) r;
