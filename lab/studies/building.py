"""A build of a full table: time and memory, against pgvector's HNSW on the same rows.

Run as ``python -m lab study building --data FILE``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg

from foh_pg.errors import FohError
from lab.costs import postmaster, tree_cpu
from lab.dataset import Dataset
from lab.search import table
from lab.search.arrivals import Arrivals
from lab.stream.benchmark import Say
from lab.studies.updating import finish, parser
from lab.summary import Record, Report, Table

COMMAND = (sys.executable, "-c", "from foh_pg.cli import app; app()")

HNSW = "CREATE INDEX items_graph ON items USING hnsw (embedding vector_cosine_ops)"


def run(data: Dataset, settings: argparse.Namespace, say: Say) -> Iterator[Record]:
    """Build ours in a process of its own, then HNSW with the server's default number of workers."""
    rows = Arrivals.of(data, settings.rows, 1, "next", 0).rows
    with table.database() as dsn, table.open_connection(dsn) as connection:
        say(f"loading {len(rows.base)} rows")
        table.create_table(connection, rows.dimensions)
        table.insert(connection, rows, np.arange(len(rows.base)))
        connection.execute("VACUUM ANALYZE items")
        server = postmaster(dsn)
        base: Record = {"experiment": "build", "rows": len(rows.base), "dimensions": rows.dimensions}
        say("building ours")
        table.create_index(connection, "ours", settings.bits)
        yield {**base, "name": "foh", **_build(dsn, connection, server)}
        if not settings.no_hnsw:
            say("building HNSW")
            yield {**base, "name": "pgvector HNSW", **_graph(connection, server)}


def _build(dsn: str, connection: psycopg.Connection[Any], server: int) -> Record:
    started, before = time.perf_counter(), tree_cpu(server)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*COMMAND, "build", "ours", f"--dsn={dsn}"], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise FohError(f"foh-pg build failed: {said.strip()}")
    size = connection.execute("SELECT sum(bytes)::bigint FROM foh.index_size('ours')").fetchone()
    own = used.ru_utime + used.ru_stime
    return {
        "wall": time.perf_counter() - started,
        "own_cpu": own,
        "cpu": own + tree_cpu(server) - before,
        # In kilobytes on Linux.
        "peak_mb": used.ru_maxrss / 1024,
        "bytes": int(size[0]) if size else 0,
    }


def _graph(connection: psycopg.Connection[Any], server: int) -> Record:
    started, before = time.perf_counter(), tree_cpu(server)
    connection.execute(HNSW)
    size = connection.execute("SELECT pg_relation_size('items_graph')").fetchone()
    return {
        "wall": time.perf_counter() - started,
        "cpu": tree_cpu(server) - before,
        "bytes": int(size[0]) if size else 0,
    }


def table_of(report: Report) -> Table:
    """A build of the whole table."""
    rows = [
        [
            f"{r['name']}, {r['rows']} x {r['dimensions']}",
            f"{r['wall']:.1f}",
            f"{r['cpu']:.1f}",
            f"{r['peak_mb']:.0f}" if r.get("peak_mb") else "",
            f"{r['bytes'] / 1e6:.0f}",
        ]
        for r in report.select("build")
    ]
    note = "CPU of the client and of all processes of the server; peak memory of the client."
    return Table("Build of a full table", note, ["", "wall s", "CPU s", "peak MB", "size MB"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    takes = parser(__doc__)
    takes.add_argument("--rows", type=int, help="use at most this many rows, the first of the file")
    takes.add_argument("--no-hnsw", action="store_true", help="leave out pgvector's HNSW, which takes long")
    given = takes.parse_args(arguments)
    finish("build", given, run, table_of)


if __name__ == "__main__":
    main()
