SELECT array_agg(f.key), array_agg(f.distance), array_agg(f.marks) INTO keys, distances, marks
        FROM ({found}) f;
        -- The nearest nine rows vote: how many of them have each bit, as a binary number of four digits. Their marks are added
        -- digit by digit, three at a time: the sum is a # b # c, what is carried the majority of the three.
        marks_1 := coalesce(marks[1], {mark_zeros});
        marks_2 := coalesce(marks[2], {mark_zeros});
        marks_3 := coalesce(marks[3], {mark_zeros});
        sum_1 := marks_1 # marks_2 # marks_3;
        carry_1 := (marks_1 & marks_2) | (marks_3 & (marks_1 # marks_2));
        marks_1 := coalesce(marks[4], {mark_zeros});
        marks_2 := coalesce(marks[5], {mark_zeros});
        marks_3 := coalesce(marks[6], {mark_zeros});
        sum_2 := marks_1 # marks_2 # marks_3;
        carry_2 := (marks_1 & marks_2) | (marks_3 & (marks_1 # marks_2));
        marks_1 := coalesce(marks[7], {mark_zeros});
        marks_2 := coalesce(marks[8], {mark_zeros});
        marks_3 := coalesce(marks[9], {mark_zeros});
        sum_3 := marks_1 # marks_2 # marks_3;
        carry_3 := (marks_1 & marks_2) | (marks_3 & (marks_1 # marks_2));
        ones := sum_1 # sum_2 # sum_3;
        carry_ones := (sum_1 & sum_2) | (sum_3 & (sum_1 # sum_2));
        sum_1 := carry_1 # carry_2 # carry_3;
        carry_1 := (carry_1 & carry_2) | (carry_3 & (carry_1 # carry_2));
        twos := sum_1 # carry_ones;
        fours := carry_1 # (sum_1 & carry_ones);
        eights := carry_1 & sum_1 & carry_ones;
        -- A voter without labels has no voice.
        voices := greatest(1, (SELECT count(*) FROM unnest(marks[1:9]) v WHERE bit_count(v & {signature_mask}) > 0));
        SELECT bit_or(b.mask) FILTER (WHERE b.chance >= 0.125), bit_or(b.mask) FILTER (WHERE b.chance >= 0.25),
               bit_or(b.mask) FILTER (WHERE b.chance >= 0.375), bit_or(b.mask) FILTER (WHERE b.chance >= 0.5),
               bit_or(b.mask) FILTER (WHERE b.chance >= 0.625), bit_or(b.mask) FILTER (WHERE b.chance >= 0.75),
               bit_or(b.mask) FILTER (WHERE b.chance >= 0.875), bit_or(b.mask) FILTER (WHERE b.chance >= 1),
               coalesce(sum(b.chance * b.votes) / nullif(sum(b.votes), 0), 0)
        INTO level_1, level_2, level_3, level_4, level_5, level_6, level_7, level_8, unknown
        FROM (SELECT b.mask, b.votes,
                     (weight_linear * coalesce(least(1, greatest(0, b.linear)), 0) + weight_votes * b.votes) / nullif(weight_linear + weight_votes, 0) AS chance
              FROM (SELECT b.mask, b.bias - (b.weights OPERATOR({vector}.<#>) projections) * per_length AS linear,
                           (get_bit(ones, b.bit) + 2 * get_bit(twos, b.bit) + 4 * get_bit(fours, b.bit) + 8 * get_bit(eights, b.bit)) / voices AS votes
                    FROM {label_bit} b OFFSET 0) b OFFSET 0) b;
        SELECT array_agg(f.key), array_agg(f.distance), array_agg(f.lean) INTO keys, distances, leans
        FROM (SELECT e.key, e.distance, e.lean
              FROM (SELECT e.key, e.distance, weight_code * ((e.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}
                                              - (weight_linear + weight_votes) * {chance} AS lean
                    FROM (SELECT unnest(keys) AS key, unnest(distances) AS distance, unnest(marks) AS marks) e OFFSET 0) e
              ORDER BY e.distance * {bit_distance} + e.lean LIMIT wanted) f;
