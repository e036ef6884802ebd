"""Codes of an index of ours without its lists: in a graph, compared one by one, and made for a query."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from lab.search.contenders import Contender, Form, index_size, nothing_to_build
from lab.search.table import Rows

CODE = sql.SQL(
    "(SELECT coalesce(bit_or(p.mask) FILTER (WHERE -(p.weights <#> {x}) >= p.bias), {zeros})"
    " FROM {projection} p)"
)
NEAREST = sql.SQL("SELECT id FROM {} ORDER BY code <~> {} LIMIT {}")

# Without labels: a code that leans on them costs one more sum.

# The copy by subvector is fetched out of TOAST once, not once for every bit.
REENCODED = sql.SQL(
    "SELECT c.id FROM (SELECT i.id, (SELECT bit_or(p.mask) FILTER (WHERE -(p.weights <#> i.x) >= p.bias)"
    " FROM {projection} p) AS code"
    " FROM (SELECT id, subvector(embedding, 1, {dimensions}) AS x FROM items OFFSET 0) i) c"
    " ORDER BY coalesce(c.code, {zeros}) <~> {asked} LIMIT {k}"
)


def codes_graph(source: str, bits: int, ef: int) -> Contender:
    """HNSW on the codes of an index of ours, the query encoded on the way."""
    table = f"{source}_codes"

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        _copy_codes(connection, source, table, bits)
        connection.execute(
            sql.SQL("CREATE INDEX {} ON {} USING hnsw (code bit_hamming_ops)").format(
                sql.Identifier(f"{table}_idx"), sql.Identifier(table)
            )
        )

    def form(k: int) -> Form:
        statement = NEAREST.format(sql.Identifier(table), code_of(source, bits), sql.Literal(k))
        return Form(f"ef_search {max(ef, k)}", k, statement, {"hnsw.ef_search": max(ef, k)})

    size = index_size(f"{table}_idx")
    return Contender("pgvector HNSW on our codes", "items", build, size, [form(10), form(100)])


def codes_scan(source: str, title: str, bits: int) -> Contender:
    """Every stored code compared."""
    table = f"{source}_codes_scan"

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        _copy_codes(connection, source, table, bits)

    size = sql.SQL("SELECT pg_total_relation_size({})").format(sql.Literal(table))
    forms = [
        Form("all codes", k, NEAREST.format(sql.Identifier(table), code_of(source, bits), sql.Literal(k)))
        for k in (10, 100)
    ]
    return Contender(title, "items", build, size, forms)


def reencoded(source: str, bits: int, dimensions: int, most: int) -> Contender:
    """Every row encoded again with the present hash functions, then every code compared.

    This is how a method without a pool answers the first query after its hash functions have changed. Nothing
    is stored, so there is nothing to build, and an arriving row costs what it costs without an index.
    """

    def form(k: int) -> Form:
        statement = REENCODED.format(
            projection=sql.Identifier("foh", f"{source}_projection"),
            dimensions=sql.Literal(dimensions),
            zeros=_zeros(bits),
            asked=code_of(source, bits),
            k=sql.Literal(k),
        )
        return Form("all rows", k, statement, most=most)

    nothing = sql.Composed([sql.SQL("SELECT 0::bigint")])
    forms = [form(10), form(100)]
    return Contender("all encoded again for a query", "items", nothing_to_build, nothing, forms)


def code_of(source: str, bits: int, x: str = "%b") -> sql.Composed:
    """The learned code of a query by the present model of an index."""
    return CODE.format(
        projection=sql.Identifier("foh", f"{source}_projection"),
        zeros=_zeros(bits),
        x=sql.SQL("%b::vector") if x == "%b" else sql.Identifier(x),
    )


def _zeros(bits: int) -> sql.Composed:
    return sql.SQL("{}::bit({})").format(sql.Literal("0" * bits), sql.Literal(bits))


def _copy_codes(connection: psycopg.Connection[Any], source: str, table: str, bits: int) -> None:
    connection.execute(
        sql.SQL(
            "CREATE TABLE {table} AS"
            " SELECT e.id, substring(e.marks FROM length(e.marks) - {short})::bit({bits}) AS code"
            " FROM (SELECT unnest(ids) AS id, unnest(marks) AS marks FROM {list}) e"
        ).format(
            table=sql.Identifier(table),
            short=sql.Literal(bits - 1),
            bits=sql.Literal(bits),
            list=sql.Identifier("foh", f"{source}_list"),
        )
    )
    connection.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(sql.Identifier(table)))
