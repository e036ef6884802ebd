"""The whole benchmark: load, build, ask, and give the records of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from foh_pg.bench.data import Dataset
from foh_pg.bench.search import experiments, table
from foh_pg.bench.search.contenders import line_up
from foh_pg.bench.search.measure import Backend, Record, built, interleave, judge_by

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What to measure.

    Attributes
    ----------
    queries, rows : int
        How many queries, and how many rows of the data set at the most.
    bits, seed : int
        Of our index; of the draw of queries.
    version : int
        Of PostgreSQL.
    shared_buffers : str
        Of the server: a small value shows what a cold cache costs.
    extras : bool
        Also rows in the stream, filters, policies and 4096 dimensions.
    quick : bool
        Fewer contenders and points.
    """

    queries: int = 500
    rows: int | None = None
    bits: int = 64
    seed: int = 0
    version: int = 18
    shared_buffers: str = "512MB"
    extras: bool = True
    quick: bool = False

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def run(data: Dataset, settings: Settings, say: Progress) -> Iterator[Record]:
    """Measure everything on a server of its own."""
    rows = table.draw(data, settings.queries, settings.rows, settings.seed)
    server = table.database(settings.version, {"shared_buffers": settings.shared_buffers})
    with server as dsn, table.open_connection(dsn) as connection:
        say("loading")
        table.load(connection, rows)
        contenders = line_up(rows, settings.bits, settings.quick)
        for contender in contenders:
            say(f"building {contender.name}")
            yield {"experiment": "build", **built(dsn, connection, contender, rows)}
        say("asking")
        forms = [(contender.name, form) for contender in contenders for form in contender.forms]
        judge = judge_by(rows, rows.nearest(100))
        for record in interleave(Backend(connection), forms, data.X[rows.queries], judge):
            yield {"experiment": "search", **record}
        if settings.extras:
            yield from _extras(dsn, connection, rows, settings, say)


def _extras(
    dsn: str, connection: psycopg.Connection[Any], rows: table.Rows, settings: Settings, say: Progress
) -> Iterator[Record]:
    say("filters")
    yield from experiments.filtered(connection, rows)
    say("policies")
    yield from experiments.by_tenant(connection, rows)
    say("rows in the stream")
    sizes = (0, 500, 2000) if settings.quick else (0, 2000, 20_000)
    yield from experiments.with_stream(connection, rows, sizes)
    if not settings.quick:
        say("4096 dimensions")
        yield from experiments.wide(dsn, connection)
