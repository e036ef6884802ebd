-- Labels came to the index or left it: marks are of another length, so lists and stream begin anew. Until an update has read
-- the source again, searches do.
DELETE FROM {list};
DELETE FROM {item};
DELETE FROM {sample};
DELETE FROM {center};
DELETE FROM {area};
DELETE FROM {stream};
ALTER TABLE {list} ALTER COLUMN marks TYPE bit({mark_bits})[] USING array_fill(NULL::bit({mark_bits}), ARRAY[0]);
ALTER TABLE {stream} ALTER COLUMN marks TYPE bit({mark_bits}) USING NULL;
