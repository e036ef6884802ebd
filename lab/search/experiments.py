"""Searches while rows wait in the stream, and rows that ask with their own vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

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
OWN_QUERIES = 1000


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
