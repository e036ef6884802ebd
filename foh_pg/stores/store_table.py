"""The table of a store, looked up once and then remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from foh_pg.stores.documents import PIN, Documents, Source

T = TypeVar("T")


class StoreTable:
    """Where the documents of a store are. The table may come later than the store."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: Documents | None = None

    def find(self, connection: sa.Connection) -> Documents | None:
        """The table, if it is there."""
        if self._found is not None:
            connection.exec_driver_sql(PIN)
        else:
            self._found = self._source.find(connection, None)
        return self._found

    def find_or_make(self, connection: sa.Connection, dimensions: int) -> Documents:
        """The table. One that is made here is not remembered: its transaction may be rolled back."""
        found = self.find(connection) or self._source.find(connection, dimensions)
        assert found is not None
        return found

    def forget(self) -> None:
        """The table is about to be dropped."""
        self._found = None

    def using(
        self, function: Callable[[sa.Connection, Documents], T], otherwise: T
    ) -> Callable[[sa.Connection], T]:
        """What runs a function on the table, and gives `otherwise` where there is no table yet."""

        def run(connection: sa.Connection) -> T:
            documents = self.find(connection)
            return otherwise if documents is None else function(connection, documents)

        return run
