"""Who answers the queries: each builds what it needs, on a table of its own, and names its statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from lab.search.table import Rows

Build = Callable[[str, psycopg.Connection[Any], Rows], None]


@dataclass(frozen=True)
class Form:
    """One statement to measure: its parameter is the query vector, its first column the key."""

    name: str
    k: int
    statement: sql.Composed
    settings: Mapping[str, str | int] = field(default_factory=dict)
    # Ask no more queries than that: for what takes seconds.
    most: int | None = None
    # Forms of a contender with the same name here differ in one setting, and are joined in a figure.
    curve: str = ""
    # What the client makes of the query vector, for contenders that compute outside of the server.
    parameters: Callable[[Any], tuple[Any, ...]] = field(default=lambda query: (query,), repr=False)


@dataclass(frozen=True)
class Contender:
    """A way to search: how it is built, what it takes on disk, and its forms."""

    # What tables call it.
    name: str
    # Whose rows it searches: items, or a copy of it that is made before the build.
    table: str
    # Makes it; timed.
    build: Build
    # A query for its bytes, tables of ours or indexes of pgvector.
    size: sql.Composed
    # What to measure.
    forms: Sequence[Form]
    # A query for the number of rows on its lists, where that may be fewer than there are.
    reached: sql.Composed | None = None


def nothing_to_build(_dsn: str, _connection: psycopg.Connection[Any], _rows: Rows) -> None:
    """The build of a contender that has only the table."""


def index_size(index: str) -> sql.Composed:
    return sql.SQL("SELECT pg_relation_size({}::regclass)").format(sql.Literal(index))
