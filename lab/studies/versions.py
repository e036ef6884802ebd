"""The CPU of searches, INSERTs, updates and builds, of this checkout and of others, in one run.

Run as ``python -m lab study versions OTHER...``, where each OTHER is a checkout of an earlier version, made
with ``git worktree add``. Every version has a server and a table of the same rows of its own; each
measurement visits them in turn, so that a busy machine is busy for all. Figures are medians, and ratios to
the first OTHER. What the updater costs is its own CPU, on one thread of BLAS, and that of the whole server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import psycopg

from lab import data as datasets
from lab.costs import measured, postmaster, tree_cpu
from lab.studies.report import parser, report

HERE = Path(__file__).parent
INSERT = "INSERT INTO item SELECT %s::int + id, embedding, labels FROM pool WHERE id >= %s AND id < %s"
UPDATE = "UPDATE item SET labels = labels WHERE id >= %s AND id < %s"
SEARCH = "SELECT * FROM foh.items_search((SELECT embedding FROM pool WHERE id = %s), 10)"
MANY = 1000
# Rows that are inserted before an update, and rows in the pool.
FRESH = 2000
POOL = 20_000

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Version:
    """A checkout, the process that runs its code, and a connection to its server."""

    name: str
    process: subprocess.Popen[str]
    connection: Connection

    @property
    def orders(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    def cost(self, order: str) -> float:
        """Have the updater do something; the seconds of CPU that it took, here and in the server."""
        server = postmaster(self.connection.info.dsn)
        before = tree_cpu(self.process.pid) + tree_cpu(server)
        self.orders.write(order + "\n")
        self.orders.flush()
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != "done":
            raise SystemExit(f"{self.name} could not {order}")
        return tree_cpu(self.process.pid) + tree_cpu(server) - before


def main() -> None:
    """Measure and print."""
    arguments = read_arguments()
    checkouts = [*arguments.others, HERE.parent]
    with TemporaryDirectory() as directory, ExitStack() as stack:
        rows = Path(directory) / "rows.npz"
        vectors, labels = made(arguments)
        np.savez(rows, vectors=vectors, labels=labels)
        arguments.rows = len(vectors) - POOL
        # Placing the rows is done before anything is measured.
        versions = [stack.enter_context(served(checkout, rows, arguments)) for checkout in checkouts]
        title = (
            f"{arguments.rows} rows of {vectors.shape[1]} dimensions, {arguments.bits} bits, "
            f"PostgreSQL {arguments.pg}"
        )
        report(title, [*measure(versions, arguments)], arguments.json)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("others", type=Path, nargs="+", help="checkouts of other versions")
    made.add_argument("--data", help="a file of rows; without it they are Gaussian clusters")
    made.add_argument("--rows", type=int, default=20_000, help="how many (default 20000)")
    made.add_argument("--dimensions", type=int, default=256, help="of the Gaussian clusters (default 256)")
    made.add_argument("--bits", type=int, default=64)
    made.add_argument("--repeat", type=int, default=200, help="statements of each kind (default 200)")
    made.add_argument("--updates", type=int, default=5, help=f"updates of {FRESH} rows each (default 5)")
    made.add_argument("--builds", type=int, default=3, help="builds (default 3)")
    made.add_argument("--pg", type=int, default=18, choices=(18, 16))
    return made.parse_args()


def made(arguments: argparse.Namespace) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of a file, or Gaussian clusters with a label for each ten of them; and those of the pool."""
    generator = np.random.default_rng(0)
    count = arguments.rows + POOL
    if arguments.data is None:
        middles = generator.normal(size=(200, arguments.dimensions))
        cluster = generator.integers(0, len(middles), count)
        vectors = middles[cluster] + 0.7 * generator.normal(size=(count, arguments.dimensions))
        return vectors, (cluster // 10).astype(str)
    data = datasets.load(arguments.data)
    chosen = generator.permutation(len(data.X))[:count]
    return data.X[chosen], np.array([" ".join(map(str, data.sets.row(int(row)))) for row in chosen])


@contextmanager
def served(checkout: Path, rows: Path, arguments: argparse.Namespace) -> Iterator[Version]:
    """A server that the code of a checkout has prepared."""
    size = [str(value) for value in (arguments.pg, rows, arguments.rows, arguments.bits)]
    with subprocess.Popen(
        [sys.executable, "-c", (HERE / "served.py").read_text(), *size],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve()), "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        dsn = process.stdout.readline().strip()
        if not dsn:
            raise SystemExit(f"the server of {checkout} did not start")
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield Version(checkout.name if checkout != HERE.parent else "this", process, connection)
        process.communicate()


def measure(versions: list[Version], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each kind of work."""
    count, repeat = min(arguments.rows, POOL), arguments.repeat
    kinds: list[tuple[str, int, str, Callable[[int], list[int]]]] = [
        ("search of 10", repeat, SEARCH, lambda at: [at % count]),
        ("INSERT of 1 row", repeat, INSERT, lambda at: [10**8, at % count, at % count + 1]),
        (f"UPDATE that changes nothing, {MANY} rows", max(5, repeat // 20), UPDATE,
         lambda at: [at * MANY % (count - MANY), at * MANY % (count - MANY) + MANY]),
        (f"INSERT of {MANY} rows", max(5, repeat // 20), INSERT,
         lambda at: [10**8 + POOL * (1 + at), at * MANY % (count - MANY), at * MANY % (count - MANY) + MANY]),
    ]  # fmt: skip
    for title, times, statement, values in kinds:
        yield compared(title, versions, times, lambda version, at: asked(version, statement, values(at)))  # noqa: B023
    for version in versions:
        version.cost("update")

    def updated(version: Version, at: int) -> float:
        start = at * FRESH % (count - FRESH)
        version.connection.execute(INSERT, [10**9 + POOL * at, start, start + FRESH])
        return 1000 * version.cost("update")

    if arguments.updates:
        yield compared(f"update of {FRESH} rows", versions, arguments.updates, updated, warm=1)
    if arguments.builds:
        yield compared(
            "build", versions, arguments.builds, lambda version, _: 1000 * version.cost("build"), warm=0
        )


def asked(version: Version, statement: str, values: list[int]) -> float:
    """Milliseconds of the server's CPU for a statement."""
    with measured(version.connection.info.backend_pid) as cost:
        version.connection.execute(statement.encode(), values, prepare=True)
    return 1000 * cost.server_cpu


def compared(
    title: str,
    versions: list[Version],
    times: int,
    work: Callable[[Version, int], float],
    warm: int = 5,
) -> dict[str, Any]:
    """Medians of the costs of the same work; the first rounds only fill caches of plans and pages."""
    costs: list[list[float]] = [[] for _ in versions]
    for at in range(times + warm):
        # Each version is first in its turn: what comes first pays for what the others pushed out.
        for turn in range(len(versions)):
            number = (at + turn) % len(versions)
            cost = work(versions[number], at)
            if at >= warm:
                costs[number].append(cost)
    middle = [median(found) for found in costs]
    figures: dict[str, Any] = {"CPU, ms": title}
    for version, value in zip(versions, middle, strict=True):
        figures[version.name] = round(value, 3)
    for version, value in list(zip(versions, middle, strict=True))[1:]:
        figures[f"{version.name} / {versions[0].name}"] = round(value / middle[0], 3)
    return figures


if __name__ == "__main__":
    main()
