"""Queries a second with several clients at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from foh_pg.postgres.binary_copy import INT4, Vector, copy_in
from lab import pgbench
from lab.costs import postmaster, tree_cpu
from lab.search import table
from lab.search.contenders import Contender, Form
from lab.summary import Record

# Contender and form; others would say little more for their time.
CHOSEN = (
    ("foh", "default"),
    ("foh", "no shortlist"),
    ("pgvector HNSW", "ef_search 40"),
    ("exact cosine", "all rows"),
)
QUERY = "(SELECT x FROM asked WHERE i = :i)"


def throughput(
    dsn: str,
    connection: psycopg.Connection[Any],
    program: Path,
    rows: table.Rows,
    contenders: Sequence[Contender],
    counts: Sequence[int],
    seconds: float,
) -> Iterator[Record]:
    """Let 1, 2, ... clients of pgbench ask for the first 10 as fast as they can, some seconds each."""
    _prepare(connection, rows)
    server = postmaster(dsn)
    for clients in counts:
        for name, form in chosen(contenders):
            before = tree_cpu(server)
            rate = pgbench.run(
                program,
                make_conninfo(dsn, options=options(form)),
                script(connection, form, len(rows.queries)),
                clients=clients,
                seconds=seconds,
            )
            # What the processes of the clients used counts when the server has seen them end.
            time.sleep(0.2)
            yield {
                "experiment": "clients",
                "contender": name,
                "form": form.name,
                "clients": clients,
                "per_second": rate.per_second,
                "latency_ms": rate.latency_ms,
                "server_cores": (tree_cpu(server) - before) / max(1, round(seconds)),
            }


def chosen(contenders: Sequence[Contender]) -> list[tuple[str, Form]]:
    """The forms that clients ask for."""
    return [
        (contender.name, form)
        for contender in contenders
        for form in contender.forms
        if (contender.name, form.name) in CHOSEN and form.k == 10
    ]


def script(connection: psycopg.Connection[Any], form: Form, queries: int) -> str:
    """The statement of a form for pgbench, the query drawn from table asked."""
    statement = form.statement.as_string(connection).replace("%b", QUERY)
    return f"\\set i random(1, {queries})\n{statement};\n"


def options(form: Form) -> str:
    """Settings of a form for libpq."""
    return " ".join(f"-c {name}={value}" for name, value in form.settings.items())


def _prepare(connection: psycopg.Connection[Any], rows: table.Rows) -> None:
    connection.execute(
        sql.SQL("CREATE TABLE asked (i int PRIMARY KEY, x vector({}))").format(sql.Literal(rows.dimensions))
    )
    numbers = np.arange(1, len(rows.queries) + 1, dtype=np.int32)
    values = (numbers, rows.data.X[rows.queries])
    copy_in(connection, sql.Identifier("asked"), ("i", "x"), (INT4, Vector(rows.dimensions)), values)
    connection.execute("VACUUM ANALYZE asked")
