"""The CPU of the server for INSERTs and searches, of this checkout and of others, in one run.

Run as ``python -m benchmarks.versions OTHER...``, where each OTHER is a checkout of an earlier version, made
with ``git worktree add``. Every version has a server and a table of the same rows of its own; each
measurement visits them in turn, so that a busy machine is busy for all. Figures are medians, and ratios to
the first OTHER.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from benchmarks.learner_report import parser, report
from foh_pg.bench.costs import measured

HERE = Path(__file__).parent
INSERT = "INSERT INTO item SELECT %s::int + id, embedding, label FROM pool WHERE id >= %s AND id < %s"
UPDATE = "UPDATE item SET label = label WHERE id >= %s AND id < %s"
SEARCH = "SELECT * FROM foh.items_search((SELECT embedding FROM pool WHERE id = %s), 10)"
MANY = 1000

Connection = psycopg.Connection[Any]


def main() -> None:
    """Measure and print."""
    arguments = read_arguments()
    checkouts = [*arguments.others, HERE.parent]
    with ExitStack() as stack:
        # Placing the rows is done before anything is measured.
        connections = [stack.enter_context(served(checkout, arguments)) for checkout in checkouts]
        names = [path.name if path != HERE.parent else "this" for path in checkouts]
        title = (
            f"{arguments.rows} rows of {arguments.dimensions} dimensions, {arguments.bits} bits, "
            f"PostgreSQL {arguments.pg}"
        )
        report(title, [*measure(connections, names, arguments)], arguments.json)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("others", type=Path, nargs="+", help="checkouts of other versions")
    made.add_argument("--rows", type=int, default=20_000)
    made.add_argument("--dimensions", type=int, default=256)
    made.add_argument("--bits", type=int, default=64)
    made.add_argument("--repeat", type=int, default=200, help="statements of each kind (default 200)")
    made.add_argument("--pg", type=int, default=18, choices=(18, 16))
    return made.parse_args()


@contextmanager
def served(checkout: Path, arguments: argparse.Namespace) -> Iterator[Connection]:
    """A connection to a server that the code of a checkout has prepared."""
    size = [str(number) for number in (arguments.pg, arguments.rows, arguments.dimensions, arguments.bits)]
    with subprocess.Popen(
        [sys.executable, "-c", (HERE / "served.py").read_text(), *size],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        dsn = process.stdout.readline().strip()
        if not dsn:
            raise SystemExit(f"the server of {checkout} did not start")
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection
        process.communicate()


def measure(
    connections: list[Connection], names: list[str], arguments: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """A row for each kind of statement."""
    count, repeat = arguments.rows, arguments.repeat
    kinds: list[tuple[str, int, str, Callable[[int], list[int]]]] = [
        ("search of 10", repeat, SEARCH, lambda at: [at % count]),
        ("INSERT of 1 row", repeat, INSERT, lambda at: [count * 10, at % count, at % count + 1]),
        (f"UPDATE that changes nothing, {MANY} rows", max(5, repeat // 20), UPDATE,
         lambda at: [at * MANY % (count - MANY), at * MANY % (count - MANY) + MANY]),
        (f"INSERT of {MANY} rows", max(5, repeat // 20), INSERT,
         lambda at: [count * (20 + at), at * MANY % (count - MANY), at * MANY % (count - MANY) + MANY]),
    ]  # fmt: skip
    for title, times, statement, values in kinds:
        costs: list[list[float]] = [[] for _ in connections]
        # The first rounds fill the caches of plans and pages.
        for at in range(times + 5):
            # Each version is first in its turn: what comes first pays for what the others pushed out.
            for turn in range(len(connections)):
                number = (at + turn) % len(connections)
                connection = connections[number]
                with measured(connection.info.backend_pid) as cost:
                    connection.execute(statement.encode(), values(at), prepare=True)
                if at >= 5:
                    costs[number].append(1000 * cost.server_cpu)
        middle = [median(found) for found in costs]
        figures: dict[str, Any] = {"CPU of the server, ms": title}
        for name, value in zip(names, middle, strict=True):
            figures[name] = round(value, 3)
        for name, value in list(zip(names, middle, strict=True))[1:]:
            figures[f"{name} / {names[0]}"] = round(value / middle[0], 3)
        yield figures


if __name__ == "__main__":
    main()
