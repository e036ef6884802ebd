"""What the document stores of all frameworks share: connections, tables, entries of the metadata."""
