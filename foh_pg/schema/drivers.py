"""A connection of psycopg or of SQLAlchemy, as the migrations use it.

SQLAlchemy is not imported here. A caller that passes one of its connections has imported it, and commands
that do not use it start faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
from psycopg.rows import scalar_row

from foh_pg.errors import InputError, SchemaError

if TYPE_CHECKING:
    import sqlalchemy as sa

    Connection = psycopg.Connection[Any] | sa.Connection

# Raised by sql/install/*.sql where the database does not fit; not one of PostgreSQL's own codes.
SCHEMA_ERROR = "FH001"


class Driver(Protocol):
    """The three things a migration asks of a connection."""

    def transaction(self) -> AbstractContextManager[Any]: ...

    def run(self, statement: str) -> None: ...

    def column(self, query: str) -> list[Any]: ...


class PsycopgDriver:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()

    def run(self, statement: str) -> None:
        self.connection.execute(statement.encode())

    def column(self, query: str) -> list[Any]:
        with self.connection.cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(query.encode()).fetchall()


class SQLAlchemyDriver:
    def __init__(self, connection: sa.Connection) -> None:
        if connection.dialect.name != "postgresql":
            raise InputError(f"foh_pg works on PostgreSQL, this connection is to {connection.dialect.name}")
        if is_autocommit(connection):
            raise InputError(
                "a migration is one transaction, and this connection has isolation level AUTOCOMMIT: "
                "pass one without it"
            )
        self.connection = connection

    def transaction(self) -> AbstractContextManager[Any]:
        if self.connection.in_transaction():
            return self.connection.begin_nested()
        return self.connection.begin()

    def run(self, statement: str) -> None:
        # Without this option a driver would look for its parameters (%s) in our text.
        self.connection.exec_driver_sql(statement, execution_options={"no_parameters": True})

    def column(self, query: str) -> list[Any]:
        return list(self.connection.exec_driver_sql(query).scalars())


def is_autocommit(connection: sa.Connection) -> bool:
    # SQLAlchemy would ask the server for the isolation level, and AUTOCOMMIT is none of the server's.
    return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))


def is_sqlalchemy(connection: Any) -> bool:
    library = sys.modules.get("sqlalchemy")
    return library is not None and isinstance(connection, library.Connection)


def driver_of(connection: Connection) -> Driver:
    if isinstance(connection, psycopg.Connection):
        return PsycopgDriver(connection)
    if is_sqlalchemy(connection):
        return SQLAlchemyDriver(connection)
    raise InputError(
        f"expected a psycopg.Connection or a sqlalchemy.Connection, got a {type(connection).__name__}"
    )


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn what sql/install/*.sql raises into a SchemaError; all other errors stay as they are."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate == SCHEMA_ERROR:
            hint = error.diag.message_hint
            raise SchemaError(
                f"{error.diag.message_primary}. {hint}" if hint else error.diag.message_primary
            ) from error
        raise
    except Exception as error:
        # SQLAlchemy keeps the driver's error in `orig`. psycopg says sqlstate, psycopg2 pgcode; other drivers
        # give only the text.
        original = getattr(error, "orig", None)
        code = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
        if code == SCHEMA_ERROR:
            raise SchemaError(str(original).strip()) from error
        raise
