"""Statements of ours on a connection of the application's, whose search_path may lead anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

SET = text("SELECT pg_catalog.set_config('search_path', :path, false)")


@contextmanager
def pinned(connection: Connection) -> Iterator[None]:
    """Inside, names and operators are PostgreSQL's own; every other name needs its schema.

    Where a statement fails, the end of its transaction brings the former search_path back.
    """
    path = connection.exec_driver_sql("SHOW search_path").scalar_one()
    connection.execute(SET, {"path": "pg_catalog, pg_temp"})
    yield
    connection.execute(SET, {"path": path})
