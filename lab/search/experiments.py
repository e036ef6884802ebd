"""Searches while rows wait in the stream, when a policy hides rows, and in 4096 dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from foh_pg.arrays.labels import LabelSets
from foh_pg.updater import build as build_index
from lab.dataset import Dataset
from lab.search import table
from lab.search.contenders import Form
from lab.search.measure import Backend, Record, interleave, judge_by
from lab.search.ours import table_of

GRAPH = sql.SQL("SELECT id FROM items_graph WHERE {} ORDER BY embedding <=> %b LIMIT 10")
OURS = sql.SQL("SELECT r.id FROM foh.anchored_search(%b, 10{}) r")
TABLE = table_of("anchored")
REPLACE = sql.SQL(
    "UPDATE {table} SET embedding = o.embedding FROM {table} o WHERE {table}.id = 0 AND o.id = 1"
).format(table=sql.Identifier(TABLE))
# pgvector goes on searching until the policy has let enough rows through, up to hnsw.max_scan_tuples.
FILTERED_QUERIES, OWN_QUERIES = 200, 1000
ITERATIVE: dict[str, str | int] = {"hnsw.ef_search": 40, "hnsw.iterative_scan": "relaxed_order"}


def with_stream(
    connection: psycopg.Connection[Any], rows: table.Rows, sizes: tuple[int, ...]
) -> Iterator[Record]:
    """Search while rows wait for the updater; the rows are copies under new keys."""
    truth = rows.truth(10)
    forms = [
        ("foh", Form("default", 10, OURS.format(sql.SQL("")))),
        ("foh", Form("no shortlist", 10, OURS.format(sql.SQL(", shortlist => 0")))),
        ("pgvector HNSW", Form("ef_search 40", 10, GRAPH.format(sql.SQL("true")), {"hnsw.ef_search": 40})),
    ]
    of_base = judge_by(rows, truth)

    def judge(query: int, answer: list[int], k: int) -> dict[str, float]:
        return of_base(query, [key % len(rows.base) for key in answer], k)

    waiting = 0
    for size in dict.fromkeys(min(size, len(rows.base)) for size in sizes):
        copies = np.arange(waiting, size)
        if len(copies):
            table.insert(connection, rows, copies, shift=len(rows.base), into=TABLE)
            _vacuum_stream(connection)
        waiting = size
        for record in interleave(Backend(connection), forms, rows.data.X[rows.queries], judge):
            yield {"experiment": "stream", "waiting": str(size), **record}
    # From now on a search must look for newer entries of the keys it finds.
    connection.execute(REPLACE)
    _vacuum_stream(connection)
    for record in interleave(Backend(connection), forms, rows.data.X[rows.queries], judge):
        yield {"experiment": "stream", "waiting": f"{waiting} and an UPDATE", **record}


def _vacuum_stream(connection: psycopg.Connection[Any]) -> None:
    connection.execute(sql.SQL("VACUUM ANALYZE {}, foh.anchored_stream").format(sql.Identifier(TABLE)))


def own_rows(connection: psycopg.Connection[Any], rows: table.Rows, seed: int) -> Iterator[Record]:
    """Rows of the table ask with their own vectors: is each of them first in its answer?"""
    backend, X = Backend(connection), rows.data.X[rows.base]
    asking = np.random.default_rng(seed).choice(len(X), min(OWN_QUERIES, len(X)), replace=False)
    forms = [
        ("foh", Form("default", 10, OURS.format(sql.SQL("")))),
        ("foh", Form("labels 0", 10, OURS.format(sql.SQL(", labels => 0")))),
        ("pgvector HNSW", Form("ef_search 40", 10, GRAPH.format(sql.SQL("true")), {"hnsw.ef_search": 40})),
    ]
    for title, form in forms:
        backend.prepare(form)
        answers = [backend.ask(form, X[own]) for own in asking]
        first = [
            bool(answer) and bool((X[answer[0]] == X[own]).all())
            for own, answer in zip(asking, answers, strict=True)
        ]
        found = [own in answer for own, answer in zip(asking, answers, strict=True)]
        yield {
            "experiment": "own",
            "contender": title,
            "form": form.name,
            "asked": len(asking),
            "first": float(np.mean(first)),
            "found": float(np.mean(found)),
        }


def by_tenant(connection: psycopg.Connection[Any], rows: table.Rows) -> Iterator[Record]:
    """Search under row-level security with 100 tenants, as one of them."""
    connection.execute("CREATE ROLE tenant")
    for name in (TABLE, "items_graph"):
        named = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE INDEX ON {} (tenant)").format(named))
        connection.execute(sql.SQL("ANALYZE {}").format(named))
        connection.execute(sql.SQL("ALTER TABLE {} ENABLE ROW LEVEL SECURITY").format(named))
        connection.execute(
            sql.SQL(
                "CREATE POLICY tenants ON {} USING (tenant = current_setting('bench.tenant')::int)"
            ).format(named)
        )
        connection.execute(sql.SQL("GRANT SELECT ON {} TO tenant").format(named))
    connection.execute("GRANT USAGE ON SCHEMA foh TO tenant")
    connection.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA foh TO tenant")
    connection.execute("SET bench.tenant = 7")
    connection.execute("SET ROLE tenant")
    forms = [
        ("foh", Form("policy", 10, OURS.format(sql.SQL("")))),
        ("pgvector HNSW", Form("policy, iterative scan", 10, GRAPH.format(sql.SQL("true")), ITERATIVE)),
    ]
    asking = table.Rows(rows.data, rows.base, rows.queries[:FILTERED_QUERIES])
    shown = np.flatnonzero(table.tenant_of(np.arange(len(rows.base))) == 7)
    judge = judge_by(asking, asking.truth(10, shown))
    for record in interleave(Backend(connection), forms, asking.data.X[asking.queries], judge):
        yield {"experiment": "policy", "keeps": "1 %", **record}
    connection.execute("RESET ROLE")


def wide(dsn: str, connection: psycopg.Connection[Any]) -> Iterator[Record]:
    """4096 dimensions and 128 bits, on synthetic rows."""
    count, queries = 4000, 100
    rng = np.random.default_rng(0)
    classes = rng.standard_normal((20, 4096), dtype=np.float32)
    labels = rng.integers(0, 20, count + queries)
    X = classes[labels] + 3 * rng.standard_normal((count + queries, 4096), dtype=np.float32)
    data = Dataset("synthetic", X, LabelSets.of([[int(y)] for y in labels]), tuple(map(str, range(20))))
    rows = table.Rows(data, np.arange(queries, count + queries), np.arange(queries))
    connection.execute("DROP TABLE IF EXISTS items CASCADE")
    table.load(connection, rows)
    connection.execute("SELECT foh.create_index('wide', 'items', 'embedding', 'labels', bits => 128)")
    build_index(dsn, "wide")
    statements = (
        ("foh", "default", "SELECT r.id FROM foh.wide_search(%b, 10) r"),
        ("foh", "no shortlist", "SELECT r.id FROM foh.wide_search(%b, 10, shortlist => 0) r"),
        ("exact cosine", "all rows", "SELECT id FROM items ORDER BY embedding <=> %b LIMIT 10"),
    )
    forms = [(title, Form(name, 10, sql.Composed([sql.SQL(text)]))) for title, name, text in statements]
    judge = judge_by(rows, rows.truth(10))
    for record in interleave(Backend(connection), forms, X[:queries], judge):
        yield {"experiment": "wide", **record}
