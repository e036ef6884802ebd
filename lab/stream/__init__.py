"""An index that follows a stream of rows: what it costs to keep it up to date, and what that brings."""
