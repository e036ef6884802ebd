-- The model before any row is known: random hyperplanes through the origin, the same for the same seed, and thresholds of zero.
-- Where the tables of an index are made again, its hash functions and its model are kept.
INSERT INTO {projection} (bit, weights, bias, mask)
SELECT b.bit, {vector}.l2_normalize(w.weights), 0, set_bit({zeros}, b.bit, 1)
FROM generate_series(0, {bits} - 1) AS b (bit),
     LATERAL (SELECT array_agg(sqrt(-2 * ln(u.first)) * cos(2 * pi() * u.second) ORDER BY u.at)::{vector}.vector AS weights
              FROM (SELECT n AS at,
                           ((hashint8extended(2 * (b.bit * {dimensions} + n), {seed}) & 9007199254740991) + 1) / 9007199254740992.0::float8 AS first,
                           ((hashint8extended(2 * (b.bit * {dimensions} + n) + 1, {seed}) & 9007199254740991) + 1) / 9007199254740992.0::float8 AS second
                    FROM generate_series(1, {dimensions}) AS n) u) w
WHERE NOT EXISTS (SELECT FROM {projection});
INSERT INTO {quantizer} (signs, threshold)
VALUES (array_fill(1::real, ARRAY[{turned_numbers}])::{vector}.halfvec, array_fill(0::real, ARRAY[{geometry_bits}])::{vector}.vector);
INSERT INTO foh.model (index, version, mean)
SELECT {id}, 1, array_fill(0::real, ARRAY[{dimensions}])::{vector}.vector WHERE NOT EXISTS (SELECT FROM foh.model m WHERE m.index = {id});
