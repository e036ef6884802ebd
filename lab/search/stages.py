"""The paper's table of updating time and query time: what a stage costs with lists and without them.

Rows arrive in batches; after each the hash functions are new. Whoever has lists encodes those again that the
new functions changed, and reads a few for a query. Whoever has none encodes every row again and compares all
codes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from foh_pg import updater
from foh_pg.postgres.binary_copy import FLOAT8, INT8, Bits, Vector, copy_in, copy_out
from lab.costs import process_cpu
from lab.search import table
from lab.search.contenders import Form
from lab.search.measure import Backend, interleave, judge_by
from lab.summary import Record

K = 100
LISTS, ALL = "foh", "no pool, all encoded again"

# What the paper counts as training, not as updating.
LEARNING = ("learn", "compare")

FUNCTIONS = sql.SQL("SELECT weights, bias FROM foh.lists_projection ORDER BY bit")
ROWS = sql.SQL("SELECT id, embedding FROM items")
SEARCH = sql.SQL("SELECT r.id FROM {}(%b, {}, shortlist => 0) r")
# The learned code of a query, compared with every stored one.
SCAN = sql.SQL(
    "SELECT id FROM all_codes ORDER BY code <~> (SELECT coalesce(bit_or(p.mask) FILTER ("
    "WHERE -(p.weights <#> %b::vector) >= p.bias), {zeros}::bit({bits})) FROM foh.lists_projection p)"
    " LIMIT {k}"
)


@dataclass(frozen=True)
class Plan:
    """How many batches of how many rows arrive, and how many queries ask after each.

    The other rows are there before.
    """

    stages: int
    batch: int
    queries: int
    bits: int

    @classmethod
    def of(cls, rows: int, stages: int, queries: int, bits: int) -> Plan:
        """The paper's batches of 2 000, smaller where that would be more than half of the rows."""
        return cls(stages, max(1, min(2000, rows // (2 * stages))), queries, bits)


@dataclass
class Spent:
    """Seconds by the clock and on processors, here and in one process of the server, by phase.

    It is called as an updater calls whoever watches its progress.
    """

    process: int
    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    _phase: str = ""
    _since: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        self._since = self._now()

    def __call__(self, phase: str, _done: int, _total: int) -> None:
        if phase != self._phase:
            self.close()
            self._phase = phase

    def close(self) -> None:
        """Book what has passed since the last phase began."""
        now = self._now()
        for book, before, after in zip((self.wall, self.cpu), self._since, now, strict=True):
            book[self._phase] = book.get(self._phase, 0.0) + after - before
        self._since = now

    def figures(self) -> Record:
        return {
            "learn_wall": sum(self.wall.get(phase, 0.0) for phase in LEARNING),
            "learn_cpu": sum(self.cpu.get(phase, 0.0) for phase in LEARNING),
            "update_wall": sum(v for phase, v in self.wall.items() if phase not in LEARNING),
            "update_cpu": sum(v for phase, v in self.cpu.items() if phase not in LEARNING),
        }

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), time.process_time() + process_cpu(self.process)


def measure(dsn: str, rows: table.Rows, plan: Plan, say: Callable[[str], None]) -> Iterator[Record]:
    """Run the stages in an empty database: one record per method and stage."""
    start = len(rows.base) - plan.stages * plan.batch
    with table.open_connection(dsn) as connection:
        say(f"building with {start} rows")
        _prepare(dsn, connection, rows, start, plan)
        for stage in range(1, plan.stages + 1):
            say(f"stage {stage} of {plan.stages}")
            arrived = start + stage * plan.batch
            table.insert(connection, rows, np.arange(arrived - plan.batch, arrived))
            costs = {
                LISTS: _spent(connection, _update),
                ALL: _spent(connection, partial(_encode_all, rows=rows, bits=plan.bits)),
            }
            asked = _ask(connection, table.Rows(rows.data, rows.base[:arrived], rows.queries), plan)
            for name, cost in costs.items():
                yield {
                    "experiment": "stage",
                    "method": name,
                    "stage": stage,
                    "rows": arrived,
                    **cost,
                    **asked[name],
                }


def _prepare(dsn: str, connection: psycopg.Connection[Any], rows: table.Rows, start: int, plan: Plan) -> None:
    table.create_table(connection, rows.dimensions)
    table.insert(connection, rows, np.arange(start))
    connection.execute("VACUUM ANALYZE items")
    # A batch is to make a stage also where some of its rows are held out.
    options = {"label_weight": 0, "learn_rows": max(1, plan.batch // 2)}
    table.create_index(connection, "lists", plan.bits, options)
    updater.build(dsn, "lists")
    connection.execute(
        sql.SQL("CREATE TABLE all_codes (id bigint, code bit({}))").format(sql.Literal(plan.bits))
    )


def _spent(
    connection: psycopg.Connection[Any], work: Callable[[psycopg.Connection[Any], Spent], int]
) -> Record:
    spent = Spent(connection.info.backend_pid)
    encoded = work(connection, spent)
    spent.close()
    return {**spent.figures(), "rows_encoded": encoded}


def _update(connection: psycopg.Connection[Any], spent: Spent) -> int:
    return updater.update(connection, "lists", progress=spent).rows_encoded


def _encode_all(connection: psycopg.Connection[Any], _spent: Spent, *, rows: table.Rows, bits: int) -> int:
    """Encode every row by the present hash functions, here and in blocks: faster than in SQL."""
    vector, count = Vector(rows.dimensions), 0
    with connection.transaction():
        parts = zip(*copy_out(connection, FUNCTIONS, (vector, FLOAT8)), strict=True)
        weights, bias = (np.concatenate(part) for part in parts)
        found = [
            (keys, np.packbits(vectors @ weights.T >= bias.astype(np.float32), axis=1))
            for keys, vectors in copy_out(connection, ROWS, (INT8, vector))
        ]
        connection.execute("TRUNCATE all_codes")
        for part in found:
            count += copy_in(
                connection, sql.Identifier("all_codes"), ("id", "code"), (INT8, Bits(bits)), part
            )
    return count


def _ask(connection: psycopg.Connection[Any], rows: table.Rows, plan: Plan) -> dict[str, Record]:
    scan = SCAN.format(zeros=sql.Literal("0" * plan.bits), bits=sql.Literal(plan.bits), k=sql.Literal(K))
    forms = [
        (LISTS, Form("", K, SEARCH.format(sql.Identifier("foh", "lists_search"), sql.Literal(K)))),
        (ALL, Form("", K, scan)),
    ]
    rows = table.Rows(rows.data, rows.base, rows.queries[: plan.queries])
    queries = rows.data.X[rows.queries]
    names = ("asked", "precision", "average_precision", "recall", "distance", "returned")
    return {
        r["contender"]: {
            "query_cpu_ms": r["cpu_ms"],
            "query_wall_ms": r["wall_ms"],
            **{name: r[name] for name in names},
        }
        for r in interleave(Backend(connection), forms, queries, judge_by(rows, rows.truth(K)))
    }
