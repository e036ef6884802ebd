-- Labels were added to the index or removed from it, which changes the length of the marks: lists and stream are emptied.
-- Searches read the source until an update has read it again.
DELETE FROM {list};
DELETE FROM {item};
DELETE FROM {sample};
DELETE FROM {center};
DELETE FROM {area};
DELETE FROM {stream};
ALTER TABLE {list} ALTER COLUMN marks TYPE bit({mark_bits})[] USING array_fill(NULL::bit({mark_bits}), ARRAY[0]);
ALTER TABLE {stream} ALTER COLUMN marks TYPE bit({mark_bits}) USING NULL;
