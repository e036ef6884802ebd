"""Whether an index would help on a table: read a sample of it, measure the ways to rank, and decide."""
