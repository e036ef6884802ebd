"""The connection of one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from foh_pg.cli.output import say
from foh_pg.cli.rights import explained
from foh_pg.errors import FohError, SchemaError
from foh_pg.postgres.connect import connect
from foh_pg.schema import requirements
from foh_pg.schema.installed import BASE, head, refuse_foreign, revision


@contextmanager
def connected(dsn: str | None, *, installed: bool = True) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """Connect; rows are dictionaries, the server's notices go to standard error.

    Unless told that schema foh may be missing, refuses a database where it is, or is another revision.
    """
    with open_connection(dsn) as plain:
        plain.add_notice_handler(
            lambda notice: say(f"{(notice.severity or 'note').lower()}: {notice.message_primary}")
        )
        with explained(plain):
            if installed:
                require_schema(plain)
            else:
                refuse_foreign(plain)
            plain.row_factory = dict_row  # type: ignore[assignment]
            yield plain  # type: ignore[misc]


def open_connection(dsn: str | None) -> psycopg.Connection:
    """Connect; who has named no database is told how to."""
    try:
        return connect(dsn, autocommit=True)
    except psycopg.OperationalError as error:
        if dsn is not None:
            raise
        raise FohError(
            f"{str(error).strip().rstrip('.?')}. Name the database with --dsn, or with libpq's environment "
            "variables (PGHOST, ...)"
        ) from error


def not_installed(connection: psycopg.Connection[Any]) -> SchemaError:
    """What to do, which migrate would refuse on a server that is too old."""
    database, server = connection.info.dbname, connection.info.server_version // 10_000
    if server < requirements.OLDEST_SERVER:
        return SchemaError(f"PostgreSQL {server} is too old: {requirements.REQUIREMENTS}")
    return SchemaError(f"schema foh is not installed in database {database!r}: run foh-pg migrate first")


def require_schema(connection: psycopg.Connection[Any]) -> None:
    found, expected = revision(connection), head()
    if found == BASE:
        raise not_installed(connection)
    if found != expected:
        raise SchemaError(
            f"schema foh in database {connection.info.dbname!r} is at revision {found}, this foh_pg needs "
            f"{expected}: run foh-pg migrate"
        )
