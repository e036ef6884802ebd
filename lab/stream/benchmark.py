"""Rows that stream into a real table: quality over time, what each run costs, and what the others cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from foh_pg import updater
from foh_pg.errors import InputError
from lab.costs import measured
from lab.dataset import Dataset
from lab.search import arrivals, table
from lab.search.arrivals import Arrivals
from lab.summary import Record

Say = Callable[[str], None]

# The largest value of option learn_rows: so many new rows never come, and there is no stage.
NEVER = 10_000_000


@dataclass(frozen=True)
class Settings:
    """What to measure: the options of `python -m lab stream`. `freeze` None: `start`, else a sixth of all."""

    rows: int | None = None
    batch: int = 2000
    bits: int = 64
    forget: float = 1.0
    start: int = 0
    freeze: int | None = None
    queries: int = 500
    ask: str = "random"
    checkpoints: int = 3
    seed: int = 0
    version: int = 18

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def run(data: Dataset, settings: Settings, say: Say) -> Iterator[Record]:
    """Measure on a server of its own; one record per index and run, and some at the checkpoints."""
    rows = Arrivals.of(data, settings.rows, settings.queries, settings.ask, settings.seed)
    needed = settings.start + settings.batch * (2 if settings.ask == "next" else 1)
    if needed > len(rows):
        raise InputError(
            f"start is {settings.start}, batch {settings.batch}: that takes {needed} rows of {len(rows)}"
        )
    with table.database(settings.version) as dsn:
        yield from Stream(dsn, rows, settings, say).run()


@dataclass
class Stream:
    """The stream under way."""

    dsn: str
    arriving: Arrivals
    settings: Settings
    say: Say
    arrived: int = 0

    def run(self) -> Iterator[Record]:
        self._prepare()
        size = self.settings.batch
        # If the rows that arrive next are the queries, some must be left for the end.
        total = len(self.arriving) - (size if self.settings.ask == "next" else 0)
        stops = [*range(self.settings.start + size, total, size), total]
        compared = {
            stops[i] for i in np.linspace(0, len(stops) - 1, self.settings.checkpoints + 1)[1:].astype(int)
        }
        freeze = self.settings.freeze or self.settings.start or total // 6
        frozen = False
        for number, stop in enumerate(stops, start=1):
            if not frozen and self.arrived >= freeze:
                self._freeze()
                frozen = True
            self.say(f"batch {number} of {len(stops)}: {stop} rows")
            yield from self._batch(number, stop, frozen)
            if stop in compared:
                yield from self._compare(number)

    def _prepare(self) -> None:
        rows, start = self.arriving.rows, self.settings.start
        with table.open_connection(self.dsn) as connection:
            table.create_table(connection, rows.dimensions)
            if start:
                self.say(f"loading {start} rows")
                table.insert(connection, rows, np.arange(start))
                connection.execute("VACUUM ANALYZE items")
            for name in ("online", "frozen"):
                options: dict[str, Any] = {"forget": self.settings.forget, "learn_rows": self.settings.batch}
                table.create_index(connection, name, self.settings.bits, options)
                if start:
                    self.say(f"building {name}")
                    updater.build(self.dsn, name)
        self.arrived = start

    def _freeze(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("SELECT foh.alter_index('frozen', %s)", [Jsonb({"learn_rows": NEVER})])

    def _batch(self, number: int, stop: int, frozen: bool) -> Iterator[Record]:
        with table.open_connection(self.dsn) as connection:
            table.insert(connection, self.arriving.rows, np.arange(self.arrived, stop))
            self.arrived = stop
            asking = self.arriving.asking(stop, self.settings.batch)
            for name in ("online", "frozen"):
                record = {
                    "experiment": "batch",
                    "batch": number,
                    "model": name,
                    "rows": stop,
                    "frozen": frozen,
                }
                record.update(timed(connection, lambda c, name=name: updater.update(c, name), stop))  # type: ignore[misc]
                yield {**record, **arrivals.quality(connection, name, asking, stop)}

    def _compare(self, number: int) -> Iterator[Record]:
        """What encoding everything again, and training afresh, would give now: in copies of the database."""
        asking = self.arriving.asking(self.arrived, self.settings.batch)
        base: Record = {"experiment": "compared", "batch": number, "rows": self.arrived}
        yield {**base, "model": "exact cosine", **arrivals.exact_quality(asking, self.arrived)}
        ways: list[tuple[str, Callable[[Any], updater.Run]]] = [
            ("online, --full", lambda connection: updater.update(connection, "online", full=True)),
            ("trained afresh", lambda connection: updater.rebuild(connection, "online")),
        ]
        for name, work in ways:
            self.say(f"{self.arrived} rows: {name}")
            copy = arrivals.clone(self.dsn, "trial")
            try:
                with table.open_connection(copy) as connection:
                    record = {**base, "model": name, **timed(connection, work, self.arrived)}
                    yield {**record, **arrivals.quality(connection, "online", asking, self.arrived)}
            finally:
                arrivals.drop_clone(copy)


def timed(connection: psycopg.Connection[Any], work: Callable[[Any], updater.Run], rows: int) -> Record:
    """Let an updater work, and say what it did and what it cost."""
    with measured(connection.info.backend_pid) as cost:
        run = work(connection)
    return {
        "lists": run.lists,
        "rows_encoded": run.rows_encoded,
        "share_encoded": round(run.rows_encoded / rows, 5),
        "stale": run.stale,
        "flipped": run.metrics.get("flipped"),
        "refused": bool(run.metrics.get("refused")),
        "phases": {name: round(seconds, 4) for name, seconds in run.phases.items()},
        **cost.as_dict(),
    }
