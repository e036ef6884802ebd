"""What it costs to start `foh-pg`, with a server that runs: processor time of the command, and the clock.

Run as ``python -m lab study start``. The commands take turns, beside a Python that does nothing and one that
imports psycopg. On a machine that others use, the processor time says more than the clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from statistics import median

from foh_pg.updater import build
from lab import data as datasets
from lab.search import table
from lab.studies.learner_report import parser, report

ROWS = 1000
PROGRAM = "from foh_pg.cli import app; app(prog_name='foh-pg')"


def commands(dsn: str) -> dict[str, list[str]]:
    """What is run, by its name in the table."""
    connected = {
        name: [*name.split(), "--dsn", dsn]
        for name in ("status", "search items --like 1", "search items --like 1 --json")
    }
    return {
        "python -c pass": ["pass"],
        "python -c 'import psycopg'": ["import psycopg"],
        **{
            f"foh-pg {name}": [PROGRAM, *arguments]
            for name, arguments in {"--help": ["--help"], **connected}.items()
        },
    }


def run(arguments: list[str]) -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    before, started = children(), time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], stdout=subprocess.DEVNULL, check=True)
    return children() - before, time.perf_counter() - started


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=20, help="starts of each command")
    given = arguments.parse_args()
    with table.database(18) as dsn:
        with table.open_connection(dsn) as connection:
            table.load(connection, table.draw(datasets.load("digits"), 10, ROWS, seed=0))
            connection.execute("SELECT foh.create_index('items', 'items', 'embedding', 'labels')")
        build(dsn, "items")
        chosen = commands(dsn)
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in chosen}
        for _ in range(given.rounds):
            for name, command in chosen.items():
                costs[name].append(run(command))
    figures = [
        {"command": name, "CPU, s": median(cpu), "clock, s": median(clock), "clock at best, s": min(clock)}
        for name, (cpu, clock) in ((name, zip(*found, strict=True)) for name, found in costs.items())
    ]
    report(f"{given.rounds} starts each", figures, given.json)


if __name__ == "__main__":
    main()
