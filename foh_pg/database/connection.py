"""How every part of foh_pg opens a connection of its own."""

from __future__ import annotations

from typing import Any

import psycopg

# A role's or a database's own settings must not change what our long statements see or how long they may run.
SESSION = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('statement_timeout', '0', false),
       set_config('idle_in_transaction_session_timeout', '0', false)
"""


def connect(
    dsn: str | None = None, *, autocommit: bool = False, application_name: str = "foh-pg", **parameters: Any
) -> psycopg.Connection:
    """Connect to `dsn`, or to what libpq's environment variables say where it is None.

    An application name in the DSN or in PGAPPNAME wins over `application_name`.
    """
    connection = psycopg.connect(
        dsn or "",
        autocommit=True,
        client_encoding="utf8",
        fallback_application_name=application_name,
        **parameters,
    )
    try:
        connection.execute(SESSION)
        connection.autocommit = autocommit
    except BaseException:
        connection.close()
        raise
    return connection
