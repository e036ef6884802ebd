"""What pgvector offers: exact, HNSW on the embedding or its signs, and IVFFlat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from lab.search.contenders import Contender, Form, index_size, nothing_to_build
from lab.search.table import Rows


def graph(title: str, table: str, cast: sql.Composable, operators: str, ef: Sequence[int]) -> Contender:
    """HNSW on the embedding, cast or as it is, over a range of ef_search."""
    index = f"{table}_{operators}"

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        statement = sql.SQL("CREATE INDEX {} ON {} USING hnsw ((embedding{}) {})")
        connection.execute(
            statement.format(sql.Identifier(index), sql.Identifier(table), cast, sql.Identifier(operators))
        )

    def form(k: int, search: int) -> Form:
        statement = sql.SQL("SELECT id FROM {} ORDER BY embedding{} <=> %b{} LIMIT {}").format(
            sql.Identifier(table), cast, cast, sql.Literal(k)
        )
        return Form(f"ef_search {search}", k, statement, {"hnsw.ef_search": search})

    forms = [form(10, search) for search in ef] + [form(100, search) for search in ef if search >= 100]
    return Contender(title, table, build, index_size(index), forms)


def inverted(table: str, lists: int, probes: Sequence[int]) -> Contender:
    """IVFFlat, over a range of probes."""
    index = f"{table}_ivfflat"

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        connection.execute(
            sql.SQL(
                "CREATE INDEX {} ON {} USING ivfflat (embedding vector_cosine_ops) WITH (lists = {})"
            ).format(sql.Identifier(index), sql.Identifier(table), sql.Literal(lists))
        )

    statement = sql.SQL("SELECT id FROM {} ORDER BY embedding <=> %b LIMIT {}")
    forms = [
        Form(f"probes {p}", k, statement.format(sql.Identifier(table), sql.Literal(k)), {"ivfflat.probes": p})
        for k in (10, 100)
        for p in probes
    ]
    return Contender("pgvector IVFFlat", table, build, index_size(index), forms)


def quantized(table: str, dimensions: int, shortlists: Sequence[int]) -> Contender:
    """HNSW on the signs of the embedding, its best ranked again with the exact distance."""
    index = f"{table}_signs"
    signs = sql.SQL("binary_quantize(embedding)::bit({})").format(sql.Literal(dimensions))

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        connection.execute(
            sql.SQL("CREATE INDEX {} ON {} USING hnsw (({}) bit_hamming_ops)").format(
                sql.Identifier(index), sql.Identifier(table), signs
            )
        )

    def form(k: int, shortlist: int) -> Form:
        statement = sql.SQL(
            "SELECT c.id FROM (SELECT %b AS x) q, LATERAL (SELECT id, embedding FROM {} ORDER BY {} <~>"
            " binary_quantize(q.x) LIMIT {}) c ORDER BY c.embedding <=> q.x LIMIT {}"
        ).format(sql.Identifier(table), signs, sql.Literal(shortlist), sql.Literal(k))
        name = f"ef_search {shortlist}, best {shortlist}"
        return Form(name, k, statement, {"hnsw.ef_search": shortlist})

    forms = [form(k, shortlist) for k in (10, 100) for shortlist in shortlists if shortlist >= k]
    return Contender("pgvector HNSW on signs", table, build, index_size(index), forms)


def exact() -> Contender:
    """No index: every row compared."""
    statement = sql.SQL("SELECT id FROM items ORDER BY embedding <=> %b LIMIT {}")
    forms = [Form("all rows", k, statement.format(sql.Literal(k))) for k in (10, 100)]
    nothing = sql.Composed([sql.SQL("SELECT 0::bigint")])
    return Contender("exact cosine", "items", nothing_to_build, nothing, forms)
