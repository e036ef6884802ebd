"""The SQL behind every method of Index and AsyncIndex, and its parameters. Nothing here talks to a server.

The connection is the application's, and so is its search_path: everything is named with its schema.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.errors import InputError
from foh_pg.index.results import Description
from foh_pg.postgres.vectors import PackedVector, PackedVectors

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import LiteralString

# Seconds that a search on a standby waits for a position of the log.
PATIENCE = 10.0

# Arguments whose type PostgreSQL would not guess.
CASTS: dict[str, LiteralString] = {
    "source": "::pg_catalog.text::pg_catalog.regclass",
    "labels_from": "::pg_catalog.text::pg_catalog.regclass",
    "include": "::pg_catalog.text[]::pg_catalog.name[]",
}


class Call(NamedTuple):
    statement: sql.Composed
    parameters: dict[str, Any]


class Search(NamedTuple):
    """What a search may be given besides the query; None leaves it to the index."""

    k: int = 10
    probes: int | None = None
    shortlist: int | None = None
    labels: float | None = None
    filter: str | None = None
    params: Mapping[str, Any] | None = None
    recall: float | None = None
    max_distance: float | None = None
    match: Mapping[str, Any] | None = None

    def arguments(self) -> dict[str, Any]:
        if self.params is not None and self.filter is None:
            raise InputError("params are values for a filter, and there is no filter")
        given = self._asdict()
        if self.params is not None:
            given["params"] = Jsonb(dict(self.params))
        if self.match is not None:
            given["match"] = Jsonb(dict(self.match), dumps=as_json)
        return {name: value for name, value in given.items() if value is not None}


def as_json(match: Any) -> str:
    """A condition as JSON: a value that JSON does not know is written as PostgreSQL reads it.

    Examples
    --------
    >>> as_json({"price": {"<": Decimal("9.90")}, "status": {"new"}, "day": datetime.date(2024, 5, 1)})
    '{"price": {"<": "9.90"}, "status": ["new"], "day": "2024-05-01"}'
    """
    return json.dumps(match, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (Decimal, UUID, datetime.date)):
        return str(value)
    if hasattr(value, "item"):
        # A number of numpy's.
        return value.item()
    raise InputError(f"match: {value!r} is no value that a column can be compared with")


def quoted(*parts: str) -> sql.SQL:
    """A qualified name; a percent sign in it is no placeholder."""
    return sql.SQL(sql.Identifier(*parts).as_string(None).replace("%", "%%"))


def key_type(about: Description) -> sql.SQL:
    """The type of the key, with its schema: in another search_path its name may stand for another type."""
    names = {"integer": "int4", "bigint": "int8", "character varying": "varchar"}
    return quoted("pg_catalog", names.get(about.key_type, about.key_type))


def function(index: str, suffix: str) -> sql.SQL:
    return quoted("foh", f"{index}_{suffix}")


def named(arguments: Mapping[str, Any]) -> sql.Composed:
    """``name => value`` for each argument, the value as a parameter of that name."""
    return sql.SQL(", ").join(
        sql.SQL("{} => {}{}").format(
            sql.Identifier(name),
            sql.Placeholder(name),
            sql.SQL(CASTS.get(name, "")),
        )
        for name in arguments
    )


def invoke(name: str, arguments: Mapping[str, Any]) -> Call:
    """All rows and columns of one of the functions that all indexes share."""
    statement = sql.SQL("SELECT * FROM {}({})").format(quoted("foh", name), named(arguments))
    return Call(statement, dict(arguments))


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not None: only the SQL functions know the defaults."""
    return {name: value for name, value in arguments.items() if value is not None}


def create(name: str, source: str, embedding: str, arguments: Mapping[str, Any]) -> Call:
    options = arguments.get("options")
    passed = {**arguments, "options": Jsonb(dict(options)) if options else None}
    return invoke("create_index", given({"name": name, "source": source, "embedding": embedding, **passed}))


def describe(index: str) -> Call:
    # The function is there where the table is distributed, and only there.
    statement = sql.SQL(
        "SELECT d.*, pg_catalog.to_regproc(%(pull)s) IS NOT NULL AS distributed FROM {}() d"
    ).format(function(index, "describe"))
    return Call(statement, {"pull": sql.Identifier("foh", f"{index}_pull").as_string(None)})


def search(index: str, query: npt.ArrayLike, options: Search) -> Call:
    arguments = {"query": PackedVector(query), **options.arguments()}
    statement = sql.SQL("SELECT * FROM {}({})").format(function(index, "search"), named(arguments))
    return Call(statement, arguments)


def search_many(index: str, about: Description, queries: npt.ArrayLike, options: Search) -> Call:
    """One statement; the rows are (number of the query from 1, key, distance, score)."""
    arguments = options.arguments()
    statement = sql.SQL(
        "SELECT q.at, r.key, r.distance, r.score"
        " FROM pg_catalog.unnest(%(queries)s::{}[]) WITH ORDINALITY AS q (query, at)"
        " CROSS JOIN LATERAL {}(q.query, {}) WITH ORDINALITY AS r (key, distance, score, rank)"
        " ORDER BY q.at, r.rank"
    ).format(quoted(about.vector_schema, "vector"), function(index, "search"), named(arguments))
    return Call(statement, {**arguments, "queries": PackedVectors(queries, about.vector_type)})


def search_like(index: str, about: Description, key: Any, options: Search) -> Call:
    """The rows nearest to a row of the table, without that row, which need not be among the first k + 1."""
    arguments = {**options.arguments(), "k": options.k + 1}
    statement = sql.SQL(
        "SELECT r.key, r.distance, r.score"
        " FROM (SELECT {} AS key, {}::{} AS query FROM {}"
        " WHERE {} OPERATOR(pg_catalog.=) %(like)s::{} AND {} IS NOT NULL OFFSET 0) s"
        " CROSS JOIN LATERAL {}(s.query, {}) WITH ORDINALITY AS r (key, distance, score, rank)"
        " WHERE r.key OPERATOR(pg_catalog.<>) s.key ORDER BY r.rank LIMIT %(limit)s"
    ).format(
        quoted(about.key),
        quoted(about.embedding),
        quoted(about.vector_schema, "vector"),
        sql.SQL(about.source.replace("%", "%%")),
        quoted(about.key),
        key_type(about),
        quoted(about.embedding),
        function(index, "search"),
        named(arguments),
    )
    return Call(statement, {**arguments, "like": key, "limit": options.k})


def labels(index: str, query: npt.ArrayLike, k: int, without: Any = None) -> Call:
    arguments = given({"query": PackedVector(query), "k": k, "without": without})
    statement = sql.SQL("SELECT * FROM {}({})").format(function(index, "labels"), named(arguments))
    return Call(statement, arguments)


def suggest(index: str, k: int, rows: int, after_key: Any) -> Call:
    arguments = given({"k": k, "wanted": rows, "after_key": after_key})
    statement = sql.SQL("SELECT * FROM {}({})").format(function(index, "suggest"), named(arguments))
    return Call(statement, arguments)


def embedding(about: Description, key: Any) -> Call:
    """The vector of a row, where the caller sees one of that key."""
    statement = sql.SQL("SELECT {}::{} FROM {} WHERE {} OPERATOR(pg_catalog.=) %(key)s::{}").format(
        quoted(about.embedding),
        quoted(about.vector_schema, "vector"),
        sql.SQL(about.source.replace("%", "%%")),
        quoted(about.key),
        key_type(about),
    )
    return Call(statement, {"key": key})


def candidates(index: str, query: npt.ArrayLike, probes: int | None) -> Call:
    arguments = given({"query": PackedVector(query), "probes": probes})
    statement = sql.SQL("SELECT * FROM {}({})").format(function(index, "candidates"), named(arguments))
    return Call(statement, arguments)


def explain(index: str, query: npt.ArrayLike, options: Search) -> Call:
    asked = options._replace(filter=None, params=None, max_distance=None).arguments()
    arguments = {"query": PackedVector(query), **asked}
    statement = sql.SQL("SELECT step, value FROM {}({})").format(function(index, "explain"), named(arguments))
    return Call(statement, arguments)


def status(index: str) -> Call:
    statement = sql.SQL("SELECT * FROM foh.index_stat WHERE name OPERATOR(pg_catalog.=) %(name)s")
    return Call(statement.format(), {"name": index})


def alter(index: str, options: Mapping[str, Any]) -> Call:
    if not options:
        raise InputError("no option to alter: pass them by name, as in alter(probes=8)")
    others = {name: value for name, value in options.items() if name != "include"}
    arguments: dict[str, Any] = {"name": index, "options": Jsonb(others)}
    if "include" in options:
        arguments["include"] = list(options["include"])
    return invoke("alter_index", arguments)


def position() -> Call:
    return Call(sql.SQL("SELECT pg_catalog.pg_current_wal_insert_lsn()::pg_catalog.text").format(), {})


def replayed(after: str) -> Call:
    """Whether the server has replayed the log up to `after`, where it is, and the isolation level.

    Sleeps a moment on the server where it has not replayed so far.
    """
    statement = sql.SQL(
        "SELECT r.replayed, pg_catalog.pg_last_wal_replay_lsn()::pg_catalog.text,"
        " pg_catalog.current_setting('transaction_isolation'),"
        " CASE WHEN NOT r.replayed THEN pg_catalog.pg_sleep(0.01)::pg_catalog.text END"
        " FROM (SELECT NOT pg_catalog.pg_is_in_recovery() OR pg_catalog.pg_last_wal_replay_lsn()"
        " OPERATOR(pg_catalog.>=) %(after)s::pg_catalog.pg_lsn AS replayed) r"
    )
    return Call(statement.format(), {"after": after})
