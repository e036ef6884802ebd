"""The table of a store, looked up once and then remembered, and what all stores ask of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict

from foh_pg.errors import InputError
from foh_pg.stores.comparing import comparing
from foh_pg.stores.documents import PIN, Documents, Source

T = TypeVar("T")

# A libpq connection string, a URI, or what SQLAlchemy has.
Connectable = str | sa.URL | sa.Engine
# What a filter is in SQL; None where everything passes.
Condition = sa.ColumnElement[bool] | None


class StoreTable:
    """Where the documents of a store are. Both the database and the table may come later than the store.

    `translate` says what a filter of the framework is in SQL; errors in a filter are raised as `error`.
    """

    def __init__(
        self,
        connection: Callable[[], Connectable],
        source: Source,
        translate: Callable[[Documents, Any], Condition],
        error: type[InputError] = InputError,
    ) -> None:
        self._connection = connection
        self._source = source
        self._translate = translate
        self._error = error
        self._found: Documents | None = None
        self._opened = False

    @cached_property
    def _engine(self) -> sa.Engine:
        given = self._connection()
        if isinstance(given, sa.Engine):
            return given
        self._opened = True
        return sa.create_engine(url(given))

    def run(self, function: Callable[[sa.Connection, Documents], T], otherwise: T) -> T:
        """What a function gives on the table, in one transaction; `otherwise` where there is no table yet."""
        with self._engine.begin() as connection:
            documents = self._find(connection)
            return otherwise if documents is None else function(connection, documents)

    def write(self, function: Callable[[sa.Connection, Documents], T], dimensions: int) -> T:
        """The same on a table that is made where it is missing."""
        with self._engine.begin() as connection:
            documents = self._find(connection, dimensions)
            assert documents is not None
            return function(connection, documents)

    def filtered(
        self, filter: Any, function: Callable[[sa.Connection, Documents, Condition], T], otherwise: T
    ) -> T:
        """The same as `run` for a function that takes the condition that is made of a filter."""

        def translated(connection: sa.Connection, documents: Documents) -> T:
            with comparing(filter, self._error):
                return function(connection, documents, self._translate(documents, filter))

        return self.run(translated, otherwise)

    def close(self) -> None:
        """Close the connections, unless the engine is the application's."""
        if self._opened:
            self._engine.dispose()

    def _find(self, connection: sa.Connection, dimensions: int | None = None) -> Documents | None:
        if self._found is not None:
            connection.exec_driver_sql(PIN)
            return self._found
        found = self._source.find(connection, dimensions)
        if found is not None and not found.made:
            self._found = found
        return found


def url(given: str | sa.URL) -> sa.URL:
    """A SQLAlchemy address, from one, from a URI, or from a libpq connection string (``dbname=shop``)."""
    if isinstance(given, str) and "://" not in given:
        parts = {name: str(value) for name, value in conninfo_to_dict(given).items() if value is not None}
        user, password, database = (parts.pop(name, None) for name in ("user", "password", "dbname"))
        return sa.URL.create("postgresql+psycopg", user, password, database=database, query=parts)
    address = sa.make_url(given)
    # psycopg 3 is what we depend on.
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    return address
