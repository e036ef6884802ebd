"""What a search, a write and an update cost on a Citus cluster: one node, 8 shards and 32 shards.

``python -m lab study citus --dsn COORDINATOR --rows 100000`` makes three tables with the same rows in the
database of the DSN, each with an index, and prints CPU over all nodes and wall time per search. Searches of
the three take turns, in rounds, and the median of the rounds counts. The servers must run on this machine:
their CPU is read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.conninfo import make_conninfo

from foh_pg import updater
from foh_pg.index.sync_index import Index
from foh_pg.runs.run import Run
from foh_pg.runs.session import open_session
from foh_pg.tables.index_row import find_index
from foh_pg.updater.pull import pull

KINDS = {"one": 0, "eight": 8, "thirty": 32}
DIMENSIONS = 128
SETTLE = 0.5
# Searches in a table before the next one has its turn.
ROUND = 10


def vectors(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Rows around a thousand points, as embeddings lie around topics."""
    drawn = np.random.default_rng(seed)
    topics = np.random.default_rng(1).standard_normal((1000, DIMENSIONS))
    return (topics[drawn.integers(0, 1000, count)] + 0.7 * drawn.standard_normal((count, DIMENSIONS))).astype(
        np.float32
    )


class Servers:
    """CPU seconds of all processes of all nodes, those that ended meanwhile included."""

    def __init__(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            nodes = connection.execute("SELECT nodename, nodeport FROM pg_dist_node").fetchall()
        self.postmasters = []
        for host, port in nodes:
            with psycopg.connect(make_conninfo(dsn, host=host, port=str(port))) as connection:
                [text] = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone() or [""]
            self.postmasters.append(int(text.splitlines()[0]))

    def cpu(self) -> float:
        nanoseconds = 0
        ticks = 0
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                # The name of the program, in parentheses, may hold anything.
                fields = file.read_text().rpartition(")")[2].split()
                ours = int(file.parent.name) in self.postmasters
                if ours or int(fields[1]) in self.postmasters:
                    nanoseconds += int((file.parent / "schedstat").read_text().split()[0])
            except OSError:
                continue
            if ours:
                # That of children that have ended.
                ticks += sum(map(int, fields[13:15]))
        return nanoseconds / 1e9 + ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def measured(servers: Servers, results: dict[str, Any], name: str, count: int) -> Iterator[None]:
    # A process that has just ended is counted once its parent has heard of it.
    time.sleep(SETTLE)
    cpu, wall = servers.cpu(), time.perf_counter()
    yield
    wall = time.perf_counter() - wall
    time.sleep(SETTLE)
    results[name] = {"cpu_ms": 1000 * (servers.cpu() - cpu) / count, "wall_ms": 1000 * wall / count}
    print(
        f"{name:40s} cpu {results[name]['cpu_ms']:8.3f} ms  wall {results[name]['wall_ms']:8.3f} ms",
        flush=True,
    )


def fill(connection: psycopg.Connection[Any], table: str, first: int, rows: np.ndarray[Any, Any]) -> None:
    with connection.cursor().copy(f"COPY {table} (id, embedding) FROM STDIN") as copy:
        for number, row in enumerate(rows):
            copy.write_row((first + number, "[" + ",".join(f"{x:.4f}" for x in row) + "]"))


class Bench:
    """One table, and what was measured on it."""

    def __init__(self, dsn: str, kind: str, servers: Servers, results: dict[str, Any]) -> None:
        self.dsn, self.kind, self.servers, self.results = dsn, kind, servers, results
        self.table = f"bench_{kind}"
        self.connection = psycopg.connect(dsn, autocommit=True)

    def prepare(self, data: np.ndarray[Any, Any]) -> None:
        run, table = self.connection.execute, self.table
        run(f"DROP TABLE IF EXISTS {table} CASCADE")
        run("SELECT foh.drop_index(%s, if_exists => true)", [table])
        run(f"CREATE TABLE {table} (id bigint PRIMARY KEY, embedding vector({DIMENSIONS}))")
        if KINDS[self.kind]:
            run(f"SET citus.shard_count = {KINDS[self.kind]}")
            run("SELECT create_distributed_table(%s, 'id', colocate_with => 'none')", [table])
        fill(self.connection, table, 0, data)
        run("SELECT foh.create_index(%s, %s, 'embedding')", [table, table])
        with self.measured("build a row", len(data)):
            updater.build(self.dsn, table)
        run(f"VACUUM ANALYZE {table}")

    def measured(self, name: str, count: int) -> AbstractContextManager[None]:
        return measured(self.servers, self.results, f"{self.kind}: {name}", count)

    def pull(self) -> None:
        with open_session(self.dsn) as session:
            found = find_index(session, self.table)
            pull(session, Run(found.name, "update", found.version, found.version))

    def write(self, first: int, extra: np.ndarray[Any, Any]) -> None:
        run, table = self.connection.execute, self.table
        with self.measured("INSERT one by one", 500):
            for number, row in enumerate(extra[:500]):
                run(f"INSERT INTO {table} VALUES (%s, %s)", [first + number, str(row.tolist())])  # noqa: S608
        with self.measured("COPY a row", 4500):
            fill(self.connection, table, first + 500, extra[500:5000])

    def update(self, first: int, extra: np.ndarray[Any, Any]) -> None:
        updater.update(self.dsn, self.table)
        fill(self.connection, self.table, first + 5000, extra[5000:7000])
        with self.measured("update of 2000, a row", 2000):
            updater.update(self.dsn, self.table)
        self.connection.execute(f"DELETE FROM {self.table} WHERE id >= {first}")  # noqa: S608
        updater.update(self.dsn, self.table)


def search(benches: list[Bench], name: str, queries: np.ndarray[Any, Any], **options: Any) -> None:
    """Search in all tables in turns; print what the median round took."""
    indexes = [Index.open(bench.connection, bench.table) for bench in benches]
    rounds = np.array_split(queries, max(len(queries) // ROUND, 1))
    taken = np.empty((len(rounds), len(benches), 2))
    for index in indexes:
        for query in queries[:50]:
            index.search(query, 10, **options)
    for number, some in enumerate(rounds):
        for place, index in enumerate(indexes):
            cpu, wall = benches[place].servers.cpu(), time.perf_counter()
            for query in some:
                index.search(query, 10, **options)
            wall = time.perf_counter() - wall
            taken[number, place] = (benches[place].servers.cpu() - cpu) / len(some), wall / len(some)
    for bench, (cpu, wall) in zip(benches, 1000 * np.median(taken, axis=0), strict=True):
        bench.results[f"{bench.kind}: {name}"] = {"cpu_ms": cpu, "wall_ms": wall}
        print(f"{bench.kind + ': ' + name:40s} cpu {cpu:8.3f} ms  wall {wall:8.3f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=list(KINDS))
    parser.add_argument("--keep", action="store_true", help="use the tables of an earlier run")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    servers = Servers(arguments.dsn)
    results: dict[str, Any] = {}
    data, queries, extra = vectors(arguments.rows), vectors(arguments.searches, 9), vectors(7000, 5)
    # Keys that no earlier run has used.
    first = arguments.rows + 1_000_000 * (1 + int(time.time()) % 100_000)
    benches = [Bench(arguments.dsn, kind, servers, results) for kind in arguments.only]
    if not arguments.keep:
        for bench in benches:
            bench.prepare(data)
    search(benches, "search, nothing waits", queries)
    search(benches, "search, shortlist 10", queries, shortlist=10)
    for bench in benches:
        bench.write(first, extra)
    search(benches, "search, 5000 rows wait", queries)
    for bench in benches:
        if KINDS[bench.kind]:
            with bench.measured("pull a row", 5000):
                bench.pull()
    search(benches, "search, 5000 rows wait, pulled", queries)
    for bench in benches:
        bench.update(first, extra)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
