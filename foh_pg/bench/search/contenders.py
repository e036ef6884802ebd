"""Who answers the queries: each builds what it needs, and names the statements to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from foh_pg.bench.search.table import Rows
from foh_pg.updater import build as build_index

Build = Callable[[str, psycopg.Connection[Any], Rows], None]


@dataclass(frozen=True)
class Form:
    """One statement to measure: its only parameter is the query vector, its first column the key."""

    name: str
    k: int
    statement: sql.Composed
    settings: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """A way to search: how it is built, what it takes on disk, and its forms.

    Attributes
    ----------
    name : str
        What tables call it.
    build : callable
        Makes it; timed.
    size : str
        A query for its bytes, tables of ours or indexes of pgvector.
    forms : sequence of Form
        What to measure.
    """

    name: str
    build: Build
    size: sql.Composed
    forms: Sequence[Form]


def ours(name: str, title: str, bits: int, label_weight: float, probes: Sequence[int]) -> Contender:
    """An index of ours: with the default shortlist and without, over a range of probes."""

    def build(dsn: str, connection: psycopg.Connection[Any], rows: Rows) -> None:
        connection.execute(
            "SELECT foh.create_index(%s, 'items', 'embedding', 'labels', bits => %s, label_weight => %s)",
            (name, bits, label_weight),
        )
        build_index(dsn, name)

    def form(label: str, k: int, **arguments: int) -> Form:
        function = sql.Identifier("foh", f"{name}_search")
        rest = [
            sql.SQL(", {} => {}").format(sql.Identifier(key), sql.Literal(value))
            for key, value in arguments.items()
        ]
        statement = sql.SQL("SELECT r.id FROM {}(%b, {}{}) r")
        return Form(label, k, statement.format(function, sql.Literal(k), sql.Composed(rest)))

    forms = [form("default", 10), form("no shortlist", 10, shortlist=0), form("default", 100)]
    forms += [form("no shortlist", 100, shortlist=0), form("shortlist 200", 10, shortlist=200)]
    forms += [form(f"probes {p}", 10, probes=p) for p in probes]
    size = sql.SQL("SELECT sum(bytes)::bigint FROM foh.index_size({})").format(sql.Literal(name))
    return Contender(title, build, size, forms)


def graph(title: str, table: str, cast: sql.Composable, operators: str, ef: Sequence[int]) -> Contender:
    """pgvector's HNSW on the embedding, cast or as it is, over a range of ef_search."""
    index = f"{table}_{operators}"

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        copy_table(connection, table)
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
    return Contender(title, build, index_size(index), forms)


def inverted(table: str, lists: int, probes: Sequence[int]) -> Contender:
    """pgvector's IVFFlat, over a range of probes."""
    index = f"{table}_ivfflat"

    def build(_dsn: str, connection: psycopg.Connection[Any], rows: Rows) -> None:
        copy_table(connection, table)
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
    return Contender("pgvector IVFFlat", build, index_size(index), forms)


def quantized(table: str, dimensions: int, ef: int, shortlist: int) -> Contender:
    """HNSW on the signs of the embedding, its best re-ranked with the exact distance."""
    index = f"{table}_signs"

    signs = sql.SQL("binary_quantize(embedding)::bit({})").format(sql.Literal(dimensions))

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        copy_table(connection, table)
        connection.execute(
            sql.SQL("CREATE INDEX {} ON {} USING hnsw (({}) bit_hamming_ops)").format(
                sql.Identifier(index), sql.Identifier(table), signs
            )
        )

    def form(k: int) -> Form:
        statement = sql.SQL(
            "SELECT c.id FROM (SELECT %b AS x) q, LATERAL (SELECT id, embedding FROM {} ORDER BY {} <~>"
            " binary_quantize(q.x) LIMIT {}) c ORDER BY c.embedding <=> q.x LIMIT {}"
        ).format(sql.Identifier(table), signs, sql.Literal(max(k, shortlist)), sql.Literal(k))
        return Form(f"ef_search {ef}, best {max(k, shortlist)}", k, statement, {"hnsw.ef_search": ef})

    return Contender("pgvector HNSW on signs", build, index_size(index), [form(10), form(100)])


def codes_graph(source: str, bits: int, ef: int) -> Contender:
    """HNSW on the codes of an index of ours, the query encoded on the way."""
    table = f"{source}_codes"

    def build(_dsn: str, connection: psycopg.Connection[Any], rows: Rows) -> None:
        connection.execute(
            sql.SQL(
                "CREATE TABLE {} AS SELECT unnest(ids) AS id, unnest(codes)::bit({}) AS code FROM {}"
            ).format(sql.Identifier(table), sql.Literal(bits), sql.Identifier("foh", f"{source}_list"))
        )
        connection.execute(
            sql.SQL("CREATE INDEX {} ON {} USING hnsw (code bit_hamming_ops)").format(
                sql.Identifier(f"{table}_idx"), sql.Identifier(table)
            )
        )

    def form(k: int) -> Form:
        statement = sql.SQL("SELECT id FROM {} ORDER BY code <~> (SELECT {}(%b)) LIMIT {}").format(
            sql.Identifier(table), sql.Identifier("foh", f"{source}_encode"), sql.Literal(k)
        )
        return Form(f"ef_search {max(ef, k)}", k, statement, {"hnsw.ef_search": max(ef, k)})

    return Contender("pgvector HNSW on our codes", build, index_size(f"{table}_idx"), [form(10), form(100)])


def codes_scan(source: str) -> Contender:
    """Every code compared, as the methods without a pool do it."""
    statement = sql.SQL("SELECT id FROM {} ORDER BY code <~> (SELECT {}(%b)) LIMIT {}")
    names = (sql.Identifier(f"{source}_codes_scan"), sql.Identifier("foh", f"{source}_encode"))

    def build(_dsn: str, connection: psycopg.Connection[Any], rows: Rows) -> None:
        connection.execute(
            sql.SQL("CREATE TABLE {} AS SELECT unnest(ids) AS id, unnest(codes) AS code FROM {}").format(
                names[0], sql.Identifier("foh", f"{source}_list")
            )
        )

    size = sql.SQL("SELECT pg_total_relation_size({})").format(sql.Literal(f"{source}_codes_scan"))
    forms = [Form("all codes", k, statement.format(*names, sql.Literal(k))) for k in (10, 100)]
    return Contender("scan of our codes", build, size, forms)


def exact() -> Contender:
    """No index: every row compared."""

    def build(_dsn: str, connection: psycopg.Connection[Any], rows: Rows) -> None:
        """Nothing to build."""

    statement = sql.SQL("SELECT id FROM items ORDER BY embedding <=> %b LIMIT {}")
    forms = [Form("all rows", k, statement.format(sql.Literal(k))) for k in (10, 100)]
    return Contender(
        "exact cosine", build, sql.Composed([sql.Composed([sql.SQL("SELECT 0::bigint")])]), forms
    )


def index_size(index: str) -> sql.Composed:
    return sql.SQL("SELECT pg_relation_size({}::regclass)").format(sql.Literal(index))


def copy_table(connection: psycopg.Connection[Any], table: str) -> None:
    """The same rows again, so that the planner has one index to choose from; made once."""
    name = sql.Identifier(table)
    found = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()
    if found == (None,):
        connection.execute(sql.SQL("CREATE TABLE {} AS SELECT id, embedding, tenant FROM items").format(name))
        connection.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(name))
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(name))


def line_up(rows: Rows, bits: int, quick: bool) -> list[Contender]:
    """Everyone, ours first; `quick` leaves out what takes long to build or to ask."""
    d = sql.Literal(rows.dimensions)
    none, half = sql.SQL(""), sql.SQL("::halfvec({})").format(d)
    ef = (40, 100) if quick else (20, 40, 100, 200)
    probes = (2, 10) if quick else (1, 2, 10, 20, 50)
    few = [
        ours("anchored", "foh", bits, 1, probes),
        ours("symmetric", "foh, symmetric codes", bits, 0, ()),
        graph("pgvector HNSW", "items_graph", none, "vector_cosine_ops", ef),
        exact(),
    ]
    if quick:
        return few
    lists = max(10, round(len(rows.base) ** 0.5))
    return [
        *few,
        graph("pgvector HNSW on halfvec", "items_half", half, "halfvec_cosine_ops", ef),
        inverted("items_lists", lists, (1, 5, 20)),
        quantized("items_signs", rows.dimensions, 100, 100),
        codes_graph("anchored", bits, 40),
        codes_scan("anchored"),
    ]
