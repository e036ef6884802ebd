"""The whole benchmark: load, build, ask, and give the records of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from foh_pg.arrays.threads import one_thread
from lab.dataset import Dataset
from lab.search import arrivals, experiments, filters, stages, table
from lab.search.contenders import Contender
from lab.search.line_up import ALWAYS, line_up
from lab.search.measure import Backend, Record, built, interleave, judge_by

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What to measure: the options of `python -m lab search`. Without names of contenders all take part."""

    queries: int = 500
    rows: int | None = None
    bits: int = 64
    seed: int = 0
    version: int = 18
    shared_buffers: str = "2GB"
    extras: bool = True
    quick: bool = False
    contenders: tuple[str, ...] = ()
    filters: bool = False

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "contenders": list(self.contenders)}


def run(data: Dataset, settings: Settings, say: Progress) -> Iterator[Record]:
    """Measure everything on a server of its own."""
    rows = table.draw(data, settings.queries, settings.rows, settings.seed)
    server = table.database(settings.version, {"shared_buffers": settings.shared_buffers})
    with server as dsn:
        # Copied while it is empty and nobody is connected.
        empty = arrivals.clone(dsn, "stages") if settings.extras else None
        with table.open_connection(dsn) as connection:
            yield _versions(connection)
            say("loading")
            table.load(connection, rows)
            contenders = line_up(rows, settings.bits, settings.quick, settings.contenders)
            yield from _search(dsn, connection, rows, contenders, say)
            say("own rows")
            yield from experiments.own_rows(connection, rows, settings.seed)
            if settings.extras:
                yield from _extras(connection, rows, settings, say)
        if empty is not None:
            yield from _stages(empty, rows, settings, say)


def measure_filters(data: Dataset, settings: Settings, say: Progress) -> Iterator[Record]:
    """Nothing but searches with conditions."""
    rows = table.draw(data, settings.queries, settings.rows, settings.seed)
    server = table.database(settings.version, {"shared_buffers": settings.shared_buffers})
    with server as dsn, table.open_connection(dsn) as connection:
        yield _versions(connection)
        say("loading")
        table.load(connection, rows)
        for contender in line_up(rows, settings.bits, settings.quick, ALWAYS):
            say(f"building {contender.name}")
            yield {"experiment": "build", **built(dsn, connection, contender, rows)}
        say("filters")
        yield from filters.measure(connection, rows)


def measure_stages(data: Dataset, settings: Settings, say: Progress) -> Iterator[Record]:
    """Nothing but the paper's stages."""
    rows = table.draw(data, settings.queries, settings.rows, settings.seed)
    with table.database(settings.version, {"shared_buffers": settings.shared_buffers}) as dsn:
        yield from _stages(dsn, rows, settings, say)


def _versions(connection: psycopg.Connection[Any]) -> Record:
    found = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    assert found is not None
    return {
        "experiment": "server",
        "versions": {"postgresql": connection.info.parameter_status("server_version"), "pgvector": found[0]},
    }


def _search(
    dsn: str,
    connection: psycopg.Connection[Any],
    rows: table.Rows,
    contenders: Sequence[Contender],
    say: Progress,
) -> Iterator[Record]:
    for contender in contenders:
        say(f"building {contender.name}")
        yield {"experiment": "build", **built(dsn, connection, contender, rows)}
    say("asking")
    forms = [(contender.name, form) for contender in contenders for form in contender.forms]
    judge = judge_by(rows, rows.truth(100))
    for record in interleave(Backend(connection), forms, rows.data.X[rows.queries], judge):
        yield {"experiment": "search", **record}


def _extras(
    connection: psycopg.Connection[Any], rows: table.Rows, settings: Settings, say: Progress
) -> Iterator[Record]:
    say("filters")
    yield from filters.measure(connection, rows)
    say("rows in the stream")
    sizes = (0, 500, 2000) if settings.quick else (0, 2000, 20_000)
    yield from experiments.with_stream(connection, rows, sizes)


def _stages(dsn: str, rows: table.Rows, settings: Settings, say: Progress) -> Iterator[Record]:
    plan = stages.Plan.of(
        len(rows.base), 2 if settings.quick else 10, 20 if settings.quick else 100, settings.bits
    )
    with one_thread():
        yield from stages.measure(dsn, rows, plan, say)
