"""How every part of foh_pg opens a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row

from foh_pg.errors import InputError, SessionError

PID = "SELECT pg_catalog.pg_backend_pid()"
# What stands in a schema that others may write to must not run with our rights: an operator of theirs is
# found before PostgreSQL's own where the types fit better. Set before any other statement.
PIN = "SET search_path = pg_catalog, pg_temp"
# A role's or a database's own settings must not change what our long statements see or how long they may run.
# Learning leaves the session idle for as long as it takes. transaction_timeout came with PostgreSQL 17.
SESSION = """
SELECT pg_catalog.set_config(
    name, CASE name WHEN 'default_transaction_isolation' THEN 'read committed' ELSE '0' END, false)
FROM pg_catalog.pg_settings
WHERE name IN ('default_transaction_isolation', 'statement_timeout', 'transaction_timeout',
               'idle_in_transaction_session_timeout', 'idle_session_timeout')
"""
# The name that stands for this table in any search_path; if there is none, tables of that name in any schema,
# for somebody who left the schema out.
QUALIFIED = """
SELECT pg_catalog.format('%%I.%%I', n.nspname, c.relname)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE CASE WHEN %(oid)s::pg_catalog.oid IS NOT NULL THEN c.oid = %(oid)s::pg_catalog.oid
           ELSE c.relname = %(table)s::pg_catalog.text AND c.relkind IN ('r', 'p')
                AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') END
ORDER BY 1 LIMIT 3
"""


def connect(
    dsn: str | None = None, *, autocommit: bool = False, application_name: str = "foh-pg", **parameters: Any
) -> psycopg.Connection:
    """Connect to `dsn`, or to what libpq's environment variables say where it is None.

    An application name in the DSN or in PGAPPNAME wins over `application_name`. A proxy that pools
    transactions is refused: what is set here would stay in its sessions, and the application's next
    transaction would have our search_path.
    """
    connection = psycopg.connect(
        dsn or "",
        autocommit=True,
        client_encoding="utf8",
        fallback_application_name=application_name,
        **parameters,
    )
    try:
        refuse_pooled_transactions(connection)
        connection.execute(PIN)
        connection.execute(SESSION)
        connection.autocommit = autocommit
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_pooled_transactions(connection: psycopg.Connection[Any]) -> None:
    """Behind a proxy, see whether a second connection ends in the same server process as this one.

    A proxy makes up the number of the process that it tells a client at the beginning. Nothing is set before
    the answer is known.
    """
    info = connection.info
    with connection.cursor(row_factory=scalar_row) as cursor:
        pid = cursor.execute(PID).fetchone()
    if pid == info.backend_pid:
        return
    with psycopg.connect(
        info.dsn, password=info.password or None, autocommit=True, row_factory=scalar_row
    ) as other:
        pids = {number for _ in range(3) for number in other.execute(PID)}
    if pid in pids:
        raise SessionError(
            "two connections share one server process: a proxy that pools transactions is between. Connect "
            "foh-pg to the server itself, or to a pool in session mode; applications may search through it"
        )


@contextmanager
def own_path(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Go back to the search_path of the role and the database, for what the user wrote: a name, a filter.

    Statements of ours that run inside must name the schema of all they call.
    """
    connection.execute("RESET search_path")
    try:
        yield
    finally:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.INERROR:
            connection.execute(PIN)


def resolve(connection: psycopg.Connection[Any], table: str) -> str:
    """The qualified name of a table, given as its user writes it."""
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        with own_path(connection):
            [(oid,)] = cursor.execute("SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid", [table])
        names = [name for (name,) in cursor.execute(QUALIFIED, {"oid": oid, "table": table})]
    if oid is None or not names:
        others = f"; there is {', '.join(names)}" if names else ""
        raise InputError(
            f"there is no table {table!r} here: give it as in SQL, with its schema if need be{others}"
        )
    return str(names[0])
