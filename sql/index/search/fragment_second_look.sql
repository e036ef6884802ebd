-- Which kind of row is the query? The rows that are nearest by bits and by learned code, which leans on the labels of a stored row and
        -- guesses those of the query, vote with their labels. Labels with at least half as many votes as the first are likely. A row whose
        -- labels are all others is put back. A row without labels may be of any kind, and stays where it is.
        SELECT array_agg(r.key), array_agg(r.distance), array_agg(r.lean) INTO keys, bits, leans
        FROM (WITH found AS MATERIALIZED ({found}),
              likely AS MATERIALIZED (
                  SELECT translate(v.votes, '0123456789', CASE WHEN v.votes LIKE '%9%' THEN '0000011111' WHEN v.votes LIKE '%8%' OR v.votes LIKE '%7%' THEN '0000111111'
                                                               WHEN v.votes LIKE '%6%' OR v.votes LIKE '%5%' THEN '0001111111'
                                                               WHEN v.votes LIKE '%4%' OR v.votes LIKE '%3%' THEN '0011111111' ELSE '0111111111' END)::varbit
                         || {zeros} AS labels
                  -- Signatures are added as if they were decimal numbers: each digit of the sum counts the votes of a label. So there are nine voters.
                  FROM (SELECT lpad(sum(substring(e.marks FROM 1 FOR {signature_bits})::text::numeric)::text, {signature_bits}, '0') AS votes
                        FROM (SELECT f.marks FROM found f WHERE bit_count(f.marks & {signature_mask}) > 0
                              ORDER BY f.distance::float8 * {bit_distance} + weight_code * ((f.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}::float8
                              LIMIT {voters}) e) v)
              SELECT e.key, e.distance, e.lean
              FROM (SELECT f.key, f.distance, CASE WHEN bit_count(f.marks & {signature_mask}) > 0 AND bit_count(f.marks & l.labels) = 0 THEN lean ELSE 0::float8 END AS lean
                    FROM found f CROSS JOIN likely l OFFSET 0) e
              ORDER BY e.distance::float8 * (1::float8 + e.lean) LIMIT wanted) r;
