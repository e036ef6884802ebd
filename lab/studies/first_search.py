"""What the first search of a new connection costs, beside pgvector's HNSW: processor time of the server.

Run as ``python -m lab study first_search --data FILE``. A new connection has empty caches: what a statement
names must be read from the catalog, and a function must be compiled and planned. The contenders take turns,
each with a connection of its own for every round; later searches of the same connection are shown beside.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import psycopg
from psycopg import sql

from foh_pg.postgres.vectors import PackedVector, register
from foh_pg.updater import build
from lab import data as datasets
from lab.costs import process_cpu
from lab.search import table
from lab.studies.report import parser, report

WAYS = {
    "HNSW": "SELECT id FROM items_hnsw ORDER BY embedding <=> %s::vector LIMIT 10",
    "foh_pg": "SELECT id FROM foh.items_search(%s, 10)",
    "foh_pg, labels => 0": "SELECT id FROM foh.items_search(%s, 10, labels => 0)",
}
SEARCHES = 3


def prepare(dsn: str, rows: table.Rows) -> None:
    with table.open_connection(dsn) as connection:
        table.load(connection, rows)
        table.copy(connection, "items_hnsw")
        connection.execute("CREATE INDEX ON items_hnsw USING hnsw (embedding vector_cosine_ops)")
        connection.execute("SELECT foh.create_index('items', 'items', 'embedding', 'labels')")
    build(dsn, "items")


def ask(dsn: str, way: str, queries: list[Any]) -> list[float]:
    """Milliseconds of the server's process for each of the first searches of a new connection."""
    costs = []
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor(binary=True) as cursor:
        register(cursor)
        # What every new process pays whatever it is asked.
        cursor.execute("SELECT 1")
        for query in queries:
            before = process_cpu(connection.info.backend_pid)
            cursor.execute(sql.SQL(WAYS[way]), [PackedVector(query)], prepare=False).fetchall()
            costs.append((process_cpu(connection.info.backend_pid) - before) * 1000)
    return costs


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--data", required=True, help="a data set as foh-pg bench reads it")
    arguments.add_argument("--rows", type=int, help="at most so many rows")
    arguments.add_argument("--rounds", type=int, default=50, help="connections for each contender")
    arguments.add_argument("--pg", type=int, default=18, help="version of PostgreSQL")
    given = arguments.parse_args()
    rows = table.draw(datasets.load(given.data), SEARCHES * given.rounds, given.rows, seed=0)
    costs: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    with table.database(given.pg) as dsn:
        prepare(dsn, rows)
        for number in range(given.rounds):
            asked = rows.queries[number * SEARCHES :][:SEARCHES]
            for way in WAYS:
                costs[way].append(ask(dsn, way, list(rows.data.X[asked])))
    found = {way: [median(column) for column in zip(*rounds, strict=True)] for way, rounds in costs.items()}
    figures = [
        {
            "search": way,
            "first, ms": first,
            "times HNSW": first / found["HNSW"][0],
            "second, ms": second,
            "third, ms": third,
        }
        for way, (first, second, third) in found.items()
    ]
    report(f"{given.data}: {len(rows.base)} rows, {given.rounds} connections each", figures, given.json)


if __name__ == "__main__":
    main()
