"""What foh_pg needs of a server: one sentence for `migrate` and `doctor`; a test looks for it in the docs."""

from __future__ import annotations

# On PostgreSQL 15 everything that was tried works but searches with `match`, which call pg_input_is_valid.
OLDEST_SERVER = 16
OLDEST_PGVECTOR = (0, 7)
REQUIREMENTS = (
    f"foh_pg needs PostgreSQL {OLDEST_SERVER} or newer and "
    f"pgvector {'.'.join(map(str, OLDEST_PGVECTOR))} or newer"
)
