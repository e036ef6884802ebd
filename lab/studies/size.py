"""An index at several sizes of one table: building, searching, writing, updating and checking it.

Run as ``python -m lab study size --data PATH --rows 1000000 10000000``. The rows of a data set are repeated
with noise until there are enough of them, as `halfvec`. Every size has an embedded server of its own under
`--directory`, which needs about 1 kB of disk for each row.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from rich.console import Console

from foh_pg.postgres.binary_copy import INT8, TEXT, Array, HalfVector, Ragged, copy_in
from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.schema.migrations import migrate
from lab.costs import measured
from lab.data import load
from lab.dataset import Dataset
from lab.studies.report import parser, report

SETTINGS = {
    "shared_buffers": "2GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
    "fsync": "off",
    "autovacuum": "off",
}
NAMES = ("id", "embedding", "labels")
CHUNK = 20_000
K = 10

Row = dict[str, Any]


def main() -> None:
    """Measure and print."""
    arguments = read_arguments()
    data = load(arguments.data)
    asked = np.random.default_rng(0).permutation(len(data.X))[: arguments.queries]
    console = Console(stderr=True)
    found = [
        measure(Path(arguments.directory), data, asked, rows, arguments, console) for rows in arguments.rows
    ]
    report(f"{data.name}, repeated with noise", found, arguments.json)


def read_arguments() -> argparse.Namespace:
    asked = parser(__doc__)
    asked.add_argument("--data", required=True, help="an .npz file of rows and labels")
    asked.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    asked.add_argument("--directory", default="/tmp/foh-size", help="where the servers keep their data")
    asked.add_argument("--queries", type=int, default=300)
    asked.add_argument("--noise", type=float, default=0.3, help="its length beside that of a row")
    return asked.parse_args()


def measure(
    directory: Path,
    data: Dataset,
    asked: npt.NDArray[np.int64],
    rows: int,
    arguments: argparse.Namespace,
    console: Console,
) -> Row:
    """Everything at one size, on a server that is gone afterwards."""
    at = directory / str(rows)
    shutil.rmtree(at, ignore_errors=True)
    with (
        EmbeddedServer(at, 18, SETTINGS) as server,
        psycopg.connect(server.dsn(), autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION vector")
        migrate(connection)
        register_vector(connection)
        console.print(f"{rows:,} rows: loading")
        exact = fill(connection, data, asked, rows, arguments.noise)
        connection.execute("SELECT foh.create_index('items', 'items', 'embedding', 'labels')")
        console.print("building")
        seconds, memory = command(server.dsn(), "build", "items")
        result: Row = {"rows": rows, "build minutes": round(seconds / 60, 1), "build peak MB": round(memory)}
        size = connection.execute("SELECT sum(bytes) FROM foh.index_size('items')").fetchone()
        result["index MB"] = round(float(size[0]) / 1e6) if size else None
        connection.execute("VACUUM (ANALYZE)")
        console.print("searching")
        result |= search(connection, data, asked, exact)
        console.print("writing and updating")
        result["insert us a row"] = insert(connection, data, rows, arguments.noise)
        result["update of 2 000, s"], result["update peak MB"] = map(
            round, command(server.dsn(), "update", "items")
        )
        console.print("checking")
        seconds, memory = command(server.dsn(), "check", "items")
        result["check minutes"], result["check peak MB"] = round(seconds / 60, 1), round(memory)
    shutil.rmtree(at, ignore_errors=True)
    return result


def made(data: Dataset, places: npt.NDArray[np.int64], noise: float) -> tuple[Any, ...]:
    """Rows by their places: the data set again and again, each time with other noise but for the first."""
    source, copy = places % len(data.X), places // len(data.X)
    X = data.X[source].copy()
    rng = np.random.default_rng([int(places[0]), len(places)])
    drawn = rng.standard_normal(X.shape).astype(np.float32)
    lengths = np.linalg.norm(X, axis=1, keepdims=True) / np.linalg.norm(drawn, axis=1, keepdims=True)
    X += np.where(copy[:, None] > 0, np.float32(noise) * lengths * drawn, 0).astype(np.float32)
    sets = data.sets.take(source)
    names = np.array(data.label_names, dtype=object)
    bounds = np.concatenate([[0], np.cumsum(sets.counts)]).astype(np.int64)
    return places, X, Ragged(names[sets.ids], bounds)


def chunks(rows: int) -> Iterator[npt.NDArray[np.int64]]:
    return (np.arange(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK))


def fill(
    connection: psycopg.Connection[Any], data: Dataset, asked: npt.NDArray[np.int64], rows: int, noise: float
) -> npt.NDArray[np.int64]:
    """Load the table, without the rows that ask and their copies; returns the exact ten nearest of each."""
    dimensions = data.X.shape[1]
    connection.execute(
        sql.SQL("CREATE TABLE items (id bigint PRIMARY KEY, embedding halfvec({}), labels text[])").format(
            sql.Literal(dimensions)
        )
    )
    columns = (INT8, HalfVector(dimensions), Array(TEXT))
    queries = data.X[asked] / np.linalg.norm(data.X[asked], axis=1, keepdims=True)
    best = np.full((len(asked), K), -np.inf, dtype=np.float32)
    keys = np.full((len(asked), K), -1, dtype=np.int64)
    for places in chunks(rows):
        kept = places[~np.isin(places % len(data.X), asked)]
        values = made(data, kept, noise)
        copy_in(connection, sql.Identifier("items"), NAMES, columns, values)
        units = values[1] / np.maximum(np.linalg.norm(values[1], axis=1, keepdims=True), 1e-9)
        found = np.concatenate([best, queries @ units.T], axis=1)
        names = np.concatenate([keys, np.broadcast_to(kept, (len(asked), len(kept)))], axis=1)
        order = np.argpartition(-found, K - 1, axis=1)[:, :K]
        best, keys = np.take_along_axis(found, order, axis=1), np.take_along_axis(names, order, axis=1)
    return keys


def search(
    connection: psycopg.Connection[Any],
    data: Dataset,
    asked: npt.NDArray[np.int64],
    exact: npt.NDArray[np.int64],
) -> Row:
    """CPU of a search, what it reads, and how good its answers are."""
    hot = data.sets.multi_hot(len(data.label_names)).astype(bool)
    statement = "SELECT s.id FROM foh.items_search(%b, 10) s"
    for at in asked[:20]:
        connection.execute(statement, (data.X[at],), binary=True).fetchall()
    precision, recall, cpu = [], [], 0.0
    for at, nearest in zip(asked, exact, strict=True):
        with measured(connection.info.backend_pid) as cost:
            found = [row[0] for row in connection.execute(statement, (data.X[at],), binary=True).fetchall()]
        cpu += cost.server_cpu
        precision.append((hot[np.array(found) % len(data.X)] & hot[at]).any(axis=1).mean())
        recall.append(len(set(found) & set(nearest.tolist())) / K)
    return {
        "search us": round(1e6 * cpu / len(asked)),
        "P@10": round(float(np.mean(precision)), 3),
        "recall@10": round(float(np.mean(recall)), 3),
        **reads(connection, data.X[asked]),
    }


def reads(connection: psycopg.Connection[Any], queries: npt.NDArray[Any]) -> Row:
    """What the searches of queries read, whatever the machine does beside them: means."""
    steps: Row = {}
    entries, compared = 0, 0
    for query in queries:
        found = connection.execute("SELECT * FROM foh.items_explain(%b, 10)", (query,), binary=True)
        steps = dict(found.fetchall())
        entries += int(steps["list entries read"])
        # All areas, and the centers of the nearest.
        plan = connection.execute(
            """EXPLAIN (ANALYZE, FORMAT JSON)
               SELECT n.* FROM foh.items_readby(%s, %s) n""",
            (query, int(steps["centers probed"])),
        ).fetchone()
        compared += entries_unpacked(plan[0][0]["Plan"]) if plan else 0
    return {
        "centers": int(steps["centers"]),
        "probes": int(steps["centers probed"]),
        "centers compared": round(compared / len(queries)),
        "entries read": round(entries / len(queries)),
    }


def entries_unpacked(node: Row) -> int:
    own = int(node["Actual Rows"] * node["Actual Loops"]) if node["Node Type"] == "ProjectSet" else 0
    return own + sum(map(entries_unpacked, node.get("Plans", ())))


def insert(connection: psycopg.Connection[Any], data: Dataset, rows: int, noise: float) -> float:
    """CPU of a row of 2 000 that come in one COPY."""
    values = made(data, np.arange(rows, rows + 2000), noise)
    columns = (INT8, HalfVector(data.X.shape[1]), Array(TEXT))
    with measured(connection.info.backend_pid) as cost:
        copy_in(connection, sql.Identifier("items"), NAMES, columns, values)
    return round(1e6 * cost.server_cpu / 2000)


# Starts a command and says how much memory it had at most. The system counts what a process had before it
# became the command, so it must not be started by a process as large as the benchmark.
STARTER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def command(dsn: str, *arguments: str) -> tuple[float, float]:
    """Seconds and peak MB of a command of ours in a process of its own."""
    before = time.perf_counter()
    program = str(Path(sys.executable).parent / "foh-pg")
    # Without `site` the process that starts it is small.
    starter = [sys.executable, "-S", "-c", STARTER, program, *arguments, "--dsn", dsn]
    done = subprocess.run(starter, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"foh-pg {' '.join(arguments)} failed")
    return time.perf_counter() - before, int(done.stdout) / 1024


if __name__ == "__main__":
    main()
