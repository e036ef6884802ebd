"""Which path shows what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import unquote

import psycopg

from foh_pg.live.first_page import first_page, title_of
from foh_pg.live.frame import HEADERS, frame
from foh_pg.live.kept import Kept, Shown
from foh_pg.live.overview import read_overview
from foh_pg.quality.report import read_content
from foh_pg.quality.report.page import body
from foh_pg.watcher.exposition import Answer

HTML = "text/html; charset=utf-8"
INDEX = "/index/"
BACK = '<nav><a href="/">All indexes</a></nav>\n'
# A table that somebody has locked must not hold a page up for long.
BOUNDS = """
SELECT pg_catalog.set_config('statement_timeout', '10s', false),
       pg_catalog.set_config('default_transaction_read_only', 'on', false)
"""
# Runs that the page of an index draws, and rows whose labels it counts: fewer than in foh-pg status --html,
# because the page is read again and again.
RUNS = 200
SAMPLE = 20_000


@dataclass(frozen=True)
class Page:
    """A page that was read and drawn, for all who look at it until it is read again."""

    # title, main: text, and HTML.
    title: str
    main: str
    # Those that the first page links.
    indexes: frozenset[str] = frozenset()


class LivePages:
    """The first page and a page for each index, read from the database at most every `PERIOD` seconds.

    `connect`: gives a new connection in autocommit mode. One at a time is opened, for as long as a reading
    takes. `names`: indexes to show; none of them means all.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], names: Sequence[str] = ()) -> None:
        self._connect = connect
        self._names = tuple(names)
        self._one_at_a_time = threading.Lock()
        self._first: Kept[Page] = Kept(self._read_first)
        self._others: dict[str, Kept[Page]] = {}
        self._lock = threading.Lock()

    def __call__(self, path: str) -> Answer | None:
        if path == "/":
            return show(self._first.get())
        if path.startswith(INDEX):
            return self._other(unquote(path[len(INDEX) :]))
        return None

    def _other(self, name: str) -> Answer:
        first = self._first.get()
        if first.value is None:
            return show(first)
        # Only indexes that exist are read, so that invented names cost no statement.
        if name not in first.value.indexes:
            return answer("No such index", f"{BACK}<h1>There is no index {escape(name)}</h1>", 404)
        with self._lock:
            for gone in self._others.keys() - first.value.indexes:
                del self._others[gone]
            page = self._others.setdefault(name, Kept(lambda: self._read_other(name)))
        return show(page.get())

    # -- reading -------------------------------------------------------------------------------------------

    def _read_first(self) -> Page:
        with self._reading() as connection:
            read = read_overview(connection, self._names)
        indexes = frozenset(index.stat["name"] for index in read.indexes)
        return Page(title_of(read), first_page(read), indexes)

    def _read_other(self, name: str) -> Page:
        with self._reading() as connection:
            content = read_content(connection, name, RUNS, SAMPLE)
        return Page(f"Index {name}", BACK + body(content))

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Connection[Any]]:
        with self._one_at_a_time, self._connect() as connection:
            connection.execute(BOUNDS)
            yield connection


def show(shown: Shown[Page]) -> Answer:
    """The page that was read last, with the reason where it could not be read again."""
    if shown.value is None:
        said = f'<p class="alarm" role="alert">{escape(shown.error)}</p>'
        return answer("The database does not answer", f"<h1>The database does not answer</h1>\n{said}", 503)
    alarm = (
        '<p class="alarm" role="alert">The database could not be read again. What is shown below is what it '
        f"said last. {escape(shown.error)}</p>\n"
    )
    return answer(shown.value.title, (alarm if shown.error else "") + shown.value.main)


def answer(title: str, main: str, status: int = 200) -> Answer:
    return Answer(status, HTML, frame(title, main), HEADERS)
