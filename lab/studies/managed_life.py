"""How long the whole life of an index takes, as a role that managed clouds give: no superuser, no CREATEROLE.

Run as ``python -m lab study managed_life --data FILE``. Each step is a command of its own, as a person would
type it, on a server of the benchmark's own. A tenth of the rows is written after the build.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psycopg

from foh_pg.postgres.embedded import EmbeddedServer
from lab import data as datasets
from lab.search import table
from lab.studies.learner_report import parser, report

PROGRAM = "from foh_pg.cli import app; app(prog_name='foh-pg')"
ROLE = "customer"


def command(dsn: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, "--dsn", dsn], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"foh-pg {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")


def hand_out(server: EmbeddedServer) -> str:
    """A database as a provider hands it out: pgvector is there, and its owner is no superuser."""
    with psycopg.connect(server.dsn(), autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOCREATEROLE NOBYPASSRLS".encode())
        superuser.execute(f"CREATE DATABASE shop OWNER {ROLE}".encode())
    with psycopg.connect(server.dsn("shop"), autocommit=True) as superuser:
        superuser.execute("CREATE EXTENSION vector")
    return psycopg.conninfo.make_conninfo(server.dsn("shop"), user=ROLE)


def steps(dsn: str, rows: table.Rows) -> list[tuple[str, Callable[[], None]]]:
    """The life of an index, in order; the table is there before, with nine tenths of its rows."""

    def write() -> None:
        with table.open_connection(dsn) as connection:
            table.insert(connection, rows, np.arange(len(rows.base) * 9 // 10, len(rows.base)))

    def search() -> None:
        with table.open_connection(dsn) as connection:
            for query in rows.data.X[rows.queries]:
                found = connection.execute("SELECT * FROM foh.items_search(%s, 10)", [query]).fetchall()
                if len(found) != 10:
                    sys.exit(f"a search found {len(found)} rows, not 10")

    def say(*arguments: str) -> tuple[str, Callable[[], None]]:
        return f"foh-pg {' '.join(arguments)}", lambda: command(dsn, *arguments)

    return [
        say("migrate"),
        say("create-index", "items", "--source=items", "--embedding=embedding", "--labels=labels"),
        say("build", "items"),
        (f"INSERT of {len(rows.base) - len(rows.base) * 9 // 10} rows", write),
        say("update", "items"),
        (f"{len(rows.queries)} searches", search),
        say("evaluate", "items"),
        say("check", "items"),
        say("check", "items", "--repair"),
        say("build", "items", "--again"),
        say("build", "items", "--version=3"),
        say("check", "items"),
        say("drop-index", "items", "--yes"),
        say("migrate", "--to=base", "--yes"),
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--data", required=True, help="a data set as foh-pg bench reads it")
    arguments.add_argument("--rows", type=int, help="at most so many rows")
    arguments.add_argument("--pg", type=int, default=18, help="version of PostgreSQL")
    given = arguments.parse_args()
    rows = table.draw(datasets.load(given.data), 100, given.rows, seed=0)
    seconds: dict[str, float] = {}
    with (
        TemporaryDirectory(prefix="foh-bench-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data", given.pg, table.SETTINGS) as server,
    ):
        dsn = hand_out(server)
        with table.open_connection(dsn) as connection:
            table.create_table(connection, rows.dimensions)
            table.insert(connection, rows, np.arange(len(rows.base) * 9 // 10))
        for name, step in steps(dsn, rows):
            started = time.perf_counter()
            step()
            # The same command may run twice.
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - started
    total = sum(seconds.values())
    seconds[f"all, {total / 60:.1f} minutes"] = total
    figures = [{"step": name, "seconds": taken} for name, taken in seconds.items()]
    report(f"{given.data}: {len(rows.base)} rows, role without superuser and CREATEROLE", figures, given.json)


if __name__ == "__main__":
    main()
