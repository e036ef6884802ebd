"""What the application sees while an update runs: its INSERTs and its searches, against idle.

Run as ``python -m lab study concurrent --data FILE``.
"""

from __future__ import annotations

import argparse
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg

from foh_pg import updater
from foh_pg.errors import InputError
from lab.dataset import Dataset
from lab.search import table
from lab.search.arrivals import Arrivals
from lab.stream.benchmark import Say
from lab.studies.building import COMMAND
from lab.studies.updating import finish, parser
from lab.summary import Record, Report, Table

INSERT = "INSERT INTO items (id, embedding, labels) VALUES (%s, %s, %s)"
SEARCH = "SELECT r.id FROM foh.busy_search(%b, 10) r"


@dataclass
class Client:
    """One connection that does one thing again and again, as fast as it can."""

    name: str
    dsn: str
    work: Callable[[psycopg.Cursor[Any], int], object]
    milliseconds: list[float] = field(default_factory=list)
    errors: int = 0
    done: int = 0

    def run(self, stop: threading.Event) -> None:
        with table.open_connection(self.dsn) as connection, connection.cursor(binary=True) as cursor:
            while not stop.is_set():
                started = time.perf_counter()
                try:
                    self.work(cursor, self.done)
                except psycopg.Error:
                    self.errors += 1
                self.done += 1
                self.milliseconds.append(1000 * (time.perf_counter() - started))


def run(data: Dataset, settings: argparse.Namespace, say: Say) -> Iterator[Record]:
    """Measure while idle, while an update runs, and while idle again."""
    if settings.rows + 2 * settings.backlog > len(data.X):
        raise InputError(f"{settings.rows} rows and twice {settings.backlog} are more than {data.name} has")
    rows = Arrivals.of(data, None, 1, "next", 0).rows
    with table.database() as dsn:
        with table.open_connection(dsn) as connection:
            say("loading and building")
            table.create_table(connection, rows.dimensions)
            table.insert(connection, rows, np.arange(settings.rows))
            connection.execute("VACUUM ANALYZE items")
            table.create_index(connection, "busy", settings.bits)
            updater.build(dsn, "busy")
            table.insert(connection, rows, np.arange(settings.rows, settings.rows + settings.backlog))
        clients = _clients(dsn, data, settings)
        for when in ("idle", "during an update", "idle again"):
            say(when)
            work = (
                _update(dsn, settings.seconds)
                if when == "during an update"
                else lambda: time.sleep(settings.seconds)
            )
            yield from _measure(clients, when, work)


def _clients(dsn: str, data: Dataset, settings: argparse.Namespace) -> list[Client]:
    names = np.array(data.label_names, dtype=object)

    def insert(cursor: psycopg.Cursor[Any], number: int) -> None:
        place = (settings.rows + settings.backlog + number) % len(data.X)
        labels = names[data.sets.take(np.array([place])).ids].tolist()
        cursor.execute(INSERT, (len(data.X) + number, data.X[place], labels), prepare=True)

    def search(cursor: psycopg.Cursor[Any], number: int) -> None:
        found = cursor.execute(SEARCH, (data.X[(number * 7919) % len(data.X)],), prepare=True).fetchall()
        assert len(found) == 10, "a search returned fewer rows than exist"

    return [Client("INSERT", dsn, insert), Client("search", dsn, search)]


def _update(dsn: str, seconds: float) -> Callable[[], None]:
    """Rows arrive all the time, so an update without a limit might never find the stream empty."""
    command = [*COMMAND, "update", "busy", f"--max-seconds={seconds}", f"--dsn={dsn}"]

    def work() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return work


def _measure(clients: list[Client], when: str, work: Callable[[], None]) -> Iterator[Record]:
    stop = threading.Event()
    threads = [threading.Thread(target=client.run, args=(stop,)) for client in clients]
    started = time.perf_counter()
    for client, thread in zip(clients, threads, strict=True):
        client.milliseconds, client.errors = [], 0
        thread.start()
    try:
        work()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    seconds = time.perf_counter() - started
    for client in clients:
        times = np.array(client.milliseconds)
        yield {
            "experiment": "concurrent",
            "work": client.name,
            "when": when,
            "seconds": round(seconds, 2),
            "per_second": len(times) / seconds,
            "median_ms": float(np.median(times)),
            "p99_ms": float(np.percentile(times, 99)),
            "longest_ms": float(times.max()),
            "errors": client.errors,
        }


def table_of(report: Report) -> Table:
    """What the application sees while an update runs."""
    rows = [
        [
            f"{r['work']}, {r['when']}",
            f"{r['per_second']:.0f}",
            f"{r['median_ms']:.2f}",
            f"{r['p99_ms']:.2f}",
            f"{r['longest_ms']:.1f}",
            str(r["errors"]),
        ]
        for r in report.select("concurrent")
    ]
    columns = ["", "per second", "median ms", "p99 ms", "longest ms", "errors"]
    note = "One connection inserts single rows, another searches the first 10, each as fast as it can."
    return Table("The application during an update", note, columns, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    takes = parser(__doc__)
    takes.add_argument("--rows", type=int, default=50_000, help="rows in the lists")
    takes.add_argument(
        "--backlog",
        type=int,
        default=8000,
        help="rows in the stream, before an update as while idle: what an update has to do",
    )
    takes.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="how long to measure while idle; an update begins no batch after that",
    )
    given = takes.parse_args(arguments)
    finish("concurrent", given, run, table_of)


if __name__ == "__main__":
    main()
