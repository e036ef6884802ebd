"""What an INSERT costs each contender: rows one by one and many at once, on its own table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import psycopg

from lab.costs import Cost, measured
from lab.dataset import Dataset
from lab.search import table
from lab.search.contenders import Contender
from lab.summary import Record

# Far from every key of the base, and of the copies that other experiments put into the stream.
FIRST = 100_000_000
MANY = 1000
# The first rounds fill the caches of plans and pages.
WARM_UP = 3
# A graph spares itself work for a vector that it has already, so rows arrive a little beside one of the base.
BESIDE = 0.1


def cost_of_arrivals(
    connection: psycopg.Connection[Any],
    rows: table.Rows,
    contenders: Sequence[Contender],
    singles: int,
    bulks: int,
) -> Iterator[Record]:
    """Let rows arrive: `singles` INSERTs of one row, then `bulks` of a thousand, everyone in turn."""
    writers = {contender.name: contender.arrive for contender in contenders if contender.arrive is not None}
    _prepare(connection, rows, WARM_UP + singles + bulks * MANY)
    low = FIRST - 1
    for size, warm_up, repeat in ((1, WARM_UP, singles), (MANY, 0, bulks)):
        costs: dict[str, list[Cost]] = {name: [] for name in writers}
        for at in range(-warm_up, repeat):
            for name, statement in writers.items():
                with measured(connection.info.backend_pid) as cost:
                    connection.execute(statement, (low, low + size), prepare=True)
                if at >= 0:
                    costs[name].append(cost)
            low += size
        for name, found in costs.items():
            yield {
                "experiment": "insert",
                "contender": name,
                "rows": size,
                "repeat": repeat,
                "cpu_ms": 1000 * median(cost.server_cpu for cost in found) / size,
                "wall_ms": 1000 * median(cost.wall for cost in found) / size,
            }


def _prepare(connection: psycopg.Connection[Any], rows: table.Rows, count: int) -> None:
    connection.execute("CREATE TABLE fresh (LIKE items INCLUDING ALL)")
    table.insert(connection, _beside(rows, count), np.arange(count), shift=FIRST, into="fresh")
    connection.execute("VACUUM ANALYZE fresh")


def _beside(rows: table.Rows, count: int) -> table.Rows:
    """Rows that nobody has seen, each near a row of the base and with its labels."""
    rng = np.random.default_rng(0)
    near = rows.base[np.arange(count) % len(rows.base)]
    X = rows.data.X[near]
    noise = rng.standard_normal(X.shape, dtype=np.float32) / np.float32(X.shape[1] ** 0.5)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    moved = (X + np.float32(BESIDE) * lengths * noise).astype(np.float32)
    data = Dataset(rows.data.name, moved, rows.data.sets.take(near), rows.data.label_names)
    return table.Rows(data, np.arange(count), rows.queries)
