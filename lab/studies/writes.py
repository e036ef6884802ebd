"""What writes cost with our triggers, with an HNSW index, and with neither.

Run as ``python -m lab study writes``. Three tables of the same rows on an embedded server with its default
settings; each measurement visits them in turn, so that a busy machine is busy for all.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql
from rich.console import Console

from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.schema.migrations import migrate
from foh_pg.updater import build
from lab import pgbench
from lab.costs import measured
from lab.studies.report import parser, report

TABLES = ("none", "foh", "hnsw")
SETTINGS = {
    "shared_buffers": "512MB",
    "maintenance_work_mem": "512MB",
    "max_connections": "100",
    "max_wal_size": "4GB",
}

# Locks that wait for somebody. A relation's extension is the heap's own affair, with any index and with none.
WAITING = """
SELECT count(*) FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation
WHERE NOT l.granted AND l.locktype <> 'extend'
"""

Connection = psycopg.Connection[Any]
Row = dict[str, Any]


def main() -> None:
    """Measure and print."""
    settings = read_arguments()
    vectors = load(settings)
    settings.rows, settings.dimensions = vectors.shape
    talk = Console(stderr=True)
    with (
        server(settings.pg) as running,
        psycopg.connect(running.dsn(), autocommit=True) as connection,
    ):
        talk.print(f"PostgreSQL {connection.info.parameter_status('server_version')}: {settings}")
        prepare(connection, vectors, settings)
        talk.print("single statements")
        rows = measure_statements(connection, settings)
        talk.print(f"{settings.writers} writers")
        rows += measure_writers(running, settings)
    title = (
        f"Writes to {settings.rows} rows of {settings.dimensions} dimensions, {settings.bits} bits, "
        f"{settings.centers} centers (medians, ms)"
    )
    report(title, rows, settings.json)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--rows", type=int, default=20000, help="rows that are there before (default 20000)")
    made.add_argument(
        "--data", type=Path, help="an .npz file whose array X holds the vectors (default: synthetic)"
    )
    made.add_argument("--dimensions", type=int, default=512, help="of synthetic vectors (default 512)")
    made.add_argument("--bits", type=int, default=64)
    made.add_argument("--centers", type=int, default=770)
    made.add_argument(
        "--repeat", type=int, default=100, help="single-row statements of each kind (default 100)"
    )
    made.add_argument("--writers", type=int, default=40)
    made.add_argument(
        "--seconds", type=float, default=5, help="of each of three rounds of concurrent writers"
    )
    made.add_argument("--pg", type=int, default=18, choices=(18, 16))
    return made.parse_args()


def load(arguments: argparse.Namespace) -> npt.NDArray[np.float32]:
    """The vectors of the file, or Gaussian clusters as many as the centers."""
    if arguments.data is not None:
        with np.load(arguments.data) as file:
            return np.asarray(file["X"][: arguments.rows], dtype=np.float32)
    generator = np.random.default_rng(0)
    middles = generator.normal(size=(arguments.centers, arguments.dimensions))
    members = middles[generator.integers(0, arguments.centers, arguments.rows)]
    members = members + 0.5 * generator.normal(size=members.shape)
    return np.asarray(members, dtype=np.float32)


@contextmanager
def server(version: int) -> Iterator[EmbeddedServer]:
    """A new server in a directory that goes with it."""
    with (
        tempfile.TemporaryDirectory(prefix="foh-bench-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data", version, SETTINGS) as running,
    ):
        yield running


def prepare(connection: Connection, vectors: npt.NDArray[np.float32], settings: argparse.Namespace) -> None:
    """A pool of vectors and three tables filled from it, each with its index."""
    connection.execute("CREATE EXTENSION vector")
    migrate(connection)
    kind = sql.SQL("vector({})").format(sql.Literal(settings.dimensions))
    connection.execute(sql.SQL("CREATE TABLE pool (i int PRIMARY KEY, e {})").format(kind))
    with connection.cursor().copy("COPY pool FROM STDIN") as copy:
        for number, vector in enumerate(vectors, 1):
            copy.write_row((number, "[" + ",".join(f"{value:.6g}" for value in vector) + "]"))
    connection.execute("CREATE SEQUENCE ids")
    connection.execute("ALTER SEQUENCE ids RESTART 10000000")
    for name in TABLES:
        table = sql.Identifier(name)
        connection.execute(
            sql.SQL("CREATE TABLE {} (id int PRIMARY KEY, e {}, note int, price int)").format(table, kind)
        )
        if name == "foh":
            connection.execute(
                "SELECT foh.create_index('foh', 'foh', 'e', bits => %s,"
                " options => jsonb_build_object('centers', %s::int), include => '{price}')",
                [settings.bits, settings.centers],
            )
        # The build places these rows: they need not pass through the triggers.
        connection.execute("SET session_replication_role = replica")
        connection.execute(sql.SQL("INSERT INTO {} SELECT i, e, 0, 0 FROM pool").format(table))
        connection.execute("RESET session_replication_role")
    connection.execute("CREATE INDEX ON hnsw USING hnsw (e vector_cosine_ops)")
    build(connection, "foh")
    connection.execute("VACUUM ANALYZE")


def measure_statements(connection: Connection, settings: argparse.Namespace) -> list[Row]:
    """Time one statement after the other on each table in turn."""
    insert = "INSERT INTO {} SELECT nextval('ids'), e, 0, 0 FROM pool WHERE i > {} AND i <= {}"
    other = "UPDATE {} SET note = note + 1 WHERE id > {} AND id <= {}"
    included = "UPDATE {} SET price = price + 1 WHERE id > {} AND id <= {}"
    embedding = "UPDATE {} SET e = e + e WHERE id > {} AND id <= {}"
    many = min(1000, settings.rows)
    rows = []
    for title, statement, size, repeat in (
        ("INSERT of 1 row", insert, 1, settings.repeat),
        (f"INSERT of {many} rows", insert, many, 5),
        ("UPDATE of another column, 1 row", other, 1, settings.repeat),
        (f"UPDATE of another column, {many} rows", other, many, 15),
        ("UPDATE of an included column, 1 row", included, 1, settings.repeat),
        (f"UPDATE of an included column, {many} rows", included, many, 5),
        ("UPDATE of the embedding, 1 row", embedding, 1, settings.repeat),
        (f"UPDATE of the embedding, {many} rows", embedding, many, 5),
    ):
        wall: dict[str, list[float]] = {name: [] for name in TABLES}
        cpu: dict[str, list[float]] = {name: [] for name in TABLES}
        # The first rounds fill the caches of plans and pages.
        for at in range(-3, repeat):
            for name in TABLES:
                low = (at * 37) % (settings.rows - size + 1)
                took, used = timed(connection, statement, name, low, low + size)
                if at >= 0:
                    wall[name].append(took)
                    cpu[name].append(used)
        rows.append(figures(title + ", wall", {name: 1000 * median(times) for name, times in wall.items()}))
        rows.append(
            figures(
                title + ", CPU of the backend", {name: 1000 * median(times) for name, times in cpu.items()}
            )
        )
    return rows


def figures(title: str, values: dict[str, float], waits: dict[str, int] | None = None) -> Row:
    """One line of the table."""
    waiting = {f"lock waits, {name}": "" if waits is None else waits[name] for name in TABLES}
    return {"": title, "no index": values["none"], "foh": values["foh"], "hnsw": values["hnsw"], **waiting}


def timed(connection: Connection, statement: str, table: str, low: int, high: int) -> tuple[float, float]:
    """Wall and CPU seconds of one statement with its commit."""
    query = sql.SQL(statement).format(sql.Identifier(table), sql.Placeholder(), sql.Placeholder())
    with measured(connection.info.backend_pid) as cost:
        connection.execute(query, [low, high], prepare=True)
    return cost.wall, cost.server_cpu


def measure_writers(running: EmbeddedServer, settings: argparse.Namespace) -> list[Row]:
    """Transactions per second of concurrent INSERTs by pgbench, three rounds on each table in turn."""
    rates: dict[str, list[float]] = {name: [] for name in TABLES}
    waits = dict.fromkeys(TABLES, 0)
    samples = dict.fromkeys(TABLES, 0)
    for _ in range(3):
        for name in TABLES:
            with watched(running.dsn()) as seen:
                rates[name].append(insert_at_once(running, name, settings))
            waits[name] += sum(seen)
            samples[name] += len(seen)
    sampled = min(samples.values())
    title = f"{settings.writers} writers, INSERTs of 1 row a second (locks sampled {sampled} times or more)"
    return [figures(title, {name: median(found) for name, found in rates.items()}, waits)]


def insert_at_once(running: EmbeddedServer, table: str, settings: argparse.Namespace) -> float:
    """Transactions per second of many writers to one table."""
    draw = f"\\set i random(1, {settings.rows})\n"
    insert = f"INSERT INTO \"{table}\" SELECT nextval('ids'), e, 0, 0 FROM pool WHERE i = :i;\n"  # noqa: S608
    program, clients = running.bin / "pgbench", settings.writers
    rate = pgbench.run(program, running.dsn(), draw + insert, clients=clients, seconds=settings.seconds)
    return rate.per_second


@contextmanager
def watched(dsn: str) -> Iterator[list[int]]:
    """Sample how many locks are waited for, until the block ends."""
    stop = threading.Event()
    seen: list[int] = []

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as watcher:
            while not stop.wait(0.01):
                found = watcher.execute(WAITING).fetchone()
                seen.append(found[0] if found else 0)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


if __name__ == "__main__":
    main()
