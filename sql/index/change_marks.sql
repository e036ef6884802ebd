-- Labels came to the index or left it: marks are of another length, so lists and stream begin anew. Until an update has read
-- the source again, searches do.
DELETE FROM {list};
DELETE FROM {item};
DELETE FROM {sample};
DELETE FROM {center};
DELETE FROM {area};
DELETE FROM {stream};
DELETE FROM {label_bit};
ALTER TABLE {list} ALTER COLUMN marks TYPE bit({mark_bits})[] USING array_fill(NULL::bit({mark_bits}), ARRAY[0]);
ALTER TABLE {stream} ALTER COLUMN marks TYPE bit({mark_bits}) USING NULL;
ALTER TABLE {label_bit} ALTER COLUMN mask TYPE bit({mark_bits}) USING {mark_zeros};
INSERT INTO {label_bit} (bit, mask, weights, bias)
SELECT b.bit, set_bit({mark_zeros}, b.bit, 1), array_fill(0::real, ARRAY[{bits}])::{vector}.vector, 0
FROM generate_series(0, {signature_bits} - 1) AS b (bit);
