"""The SQL behind every method of Index and AsyncIndex, and its parameters. Nothing here talks to a server.

The connection is the application's, and so is its search_path: everything is named with its schema.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.errors import InputError
from foh_pg.index.results import Description, key_values
from foh_pg.postgres.vectors import PackedVector, PackedVectors

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import LiteralString

COMMA = sql.SQL(", ")

# Arguments whose type PostgreSQL would not guess.
CASTS: dict[str, LiteralString] = {
    "source": "::pg_catalog.text::pg_catalog.regclass",
    "labels_from": "::pg_catalog.text::pg_catalog.regclass",
    "include": "::pg_catalog.text[]::pg_catalog.name[]",
}


class Call(NamedTuple):
    statement: sql.Composed
    parameters: dict[str, Any]


class HowToSearch(TypedDict, total=False):
    """How much a search reads, and what counts in it; `Index.search` says what each argument does."""

    probes: int | None
    shortlist: int | None
    labels: float | None
    recall: float | None
    max_distance: float | None


class SearchOptions(HowToSearch, total=False):
    """All arguments of a search by name but k."""

    filter: str | None
    params: Mapping[str, Any] | None
    match: Mapping[str, Any] | None


def search_arguments(k: int, options: SearchOptions) -> dict[str, Any]:
    """The arguments of a search in SQL; what is None is left to the index."""
    unknown = options.keys() - SearchOptions.__annotations__.keys()
    if unknown:
        raise InputError(f"a search takes no argument {min(unknown)!r}")
    if options.get("params") is not None and options.get("filter") is None:
        raise InputError("params are values for a filter, and there is no filter")
    arguments = given({"k": k, **options})
    if "params" in arguments:
        arguments["params"] = Jsonb(dict(arguments["params"]))
    if "match" in arguments:
        arguments["match"] = Jsonb(dict(arguments["match"]), dumps=as_json)
    return arguments


def as_json(match: Any) -> str:
    """A condition as JSON: a value that JSON does not know is written as PostgreSQL reads it.

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


# Types by the names that they have in pg_catalog.
TYPE_NAMES = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "character varying": "varchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}


def key_types(about: Description) -> list[sql.SQL]:
    """The types of the key, with their schema: in another search_path a name may stand for another type."""
    return [quoted("pg_catalog", TYPE_NAMES.get(name, name)) for name in about.key_types]


def numbered(about: Description, alias: str = "") -> list[sql.SQL]:
    """Names for the columns of a key that no argument has: key1, key2, ..."""
    return [sql.SQL(f"{alias}key{number}") for number in range(1, len(about.key) + 1)]


def parameters(about: Description, key: Any) -> dict[str, Any]:
    """The values of a key, by the names key1, key2, ..."""
    return {f"key{number}": value for number, value in enumerate(key_values(about, key), 1)}


def parts(about: Description) -> list[sql.Composed]:
    """These parameters, each with its type."""
    return [
        sql.SQL("{}::{}").format(sql.Placeholder(f"key{number}"), type_)
        for number, type_ in enumerate(key_types(about), 1)
    ]


def is_key(about: Description, columns: Iterable[sql.SQL]) -> sql.Composed:
    """The condition that columns have these values."""
    pairs = zip(columns, parts(about), strict=True)
    return sql.SQL(" AND ").join(
        sql.SQL("{} OPERATOR(pg_catalog.=) {}").format(column, part) for column, part in pairs
    )


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
    """All rows and columns of a function of schema foh."""
    statement = sql.SQL("SELECT * FROM {}({})").format(quoted("foh", name), named(arguments))
    return Call(statement, dict(arguments))


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not None: only the SQL functions know the defaults."""
    return {name: value for name, value in arguments.items() if value is not None}


def create(name: str, source: str, embedding: str, arguments: Mapping[str, Any]) -> Call:
    options = arguments.get("options")
    passed = {**arguments, "options": Jsonb(dict(options)) if options else None}
    for role in ("key", "labels_key"):
        passed[role] = columns_text(arguments.get(role))
    return invoke("create_index", given({"name": name, "source": source, "embedding": embedding, **passed}))


def columns_text(columns: str | Sequence[str] | None) -> str | None:
    """A column, or several as an array of SQL: what foh.create_index takes for a key.

    >>> columns_text("uid"), columns_text(["uid"]), columns_text(["tenant_id", "id"])
    ('uid', 'uid', '{"tenant_id","id"}')
    """
    if columns is None or isinstance(columns, str):
        return columns
    return columns[0] if len(columns) == 1 else names_text(columns)


def names_text(columns: Sequence[str]) -> str:
    """An array of names, as PostgreSQL reads it."""
    quoted_names = (name.replace("\\", "\\\\").replace('"', '\\"') for name in columns)
    return "{" + ",".join(f'"{name}"' for name in quoted_names) + "}"


def describe(index: str) -> Call:
    # The function is there where the table is distributed, and only there.
    statement = sql.SQL(
        "SELECT d.*, pg_catalog.to_regproc(%(pull)s) IS NOT NULL AS distributed FROM {}() d"
    ).format(function(index, "describe"))
    return Call(statement, {"pull": sql.Identifier("foh", f"{index}_pull").as_string(None)})


def search(index: str, query: npt.ArrayLike, k: int, options: SearchOptions) -> Call:
    return invoke(f"{index}_search", {"query": PackedVector(query), **search_arguments(k, options)})


def search_many(
    index: str, about: Description, queries: npt.ArrayLike, k: int, options: SearchOptions
) -> Call:
    """One statement; the rows are (number of the query from 1, key, distance, score)."""
    arguments = search_arguments(k, options)
    statement = sql.SQL(
        "SELECT q.at, {}, r.distance, r.score"
        " FROM pg_catalog.unnest(%(queries)s::{}[]) WITH ORDINALITY AS q (query, at)"
        " CROSS JOIN LATERAL {}(q.query, {}) WITH ORDINALITY AS r ({}, distance, score, rank)"
        " ORDER BY q.at, r.rank"
    ).format(
        COMMA.join(numbered(about, "r.")),
        quoted(about.vector_schema, "vector"),
        function(index, "search"),
        named(arguments),
        COMMA.join(numbered(about)),
    )
    return Call(statement, {**arguments, "queries": PackedVectors(queries, about.vector_type)})


def search_like(index: str, about: Description, key: Any, k: int, options: SearchOptions) -> Call:
    """The rows nearest to a row of the table, without that row, which need not be among the first k + 1."""
    if k < 1:
        # The search is asked for a row more, and would not notice.
        raise InputError(f"k is {k}, it must be 1 or more")
    arguments = search_arguments(k + 1, options)
    statement = sql.SQL(
        "SELECT {}, r.distance, r.score"
        " FROM (SELECT {}::{} AS query FROM {} WHERE {} AND {} IS NOT NULL OFFSET 0) s"
        " CROSS JOIN LATERAL {}(s.query, {}) WITH ORDINALITY AS r ({}, distance, score, rank)"
        " WHERE NOT ({}) ORDER BY r.rank LIMIT %(limit)s"
    ).format(
        COMMA.join(numbered(about, "r.")),
        quoted(about.embedding),
        quoted(about.vector_schema, "vector"),
        sql.SQL(about.source.replace("%", "%%")),
        is_key(about, map(quoted, about.key)),
        quoted(about.embedding),
        function(index, "search"),
        named(arguments),
        COMMA.join(numbered(about)),
        is_key(about, numbered(about, "r.")),
    )
    return Call(statement, {**arguments, **parameters(about, key), "limit": k})


def labels(index: str, about: Description, query: npt.ArrayLike, k: int, without: Any = None) -> Call:
    arguments = {"query": PackedVector(query), "k": k}
    key, values = key_argument(index, about, "without", without)
    statement = sql.SQL("SELECT * FROM {}({}{})").format(function(index, "labels"), named(arguments), key)
    return Call(statement, {**arguments, **values})


def suggest(index: str, about: Description, k: int, rows: int, after_key: Any) -> Call:
    arguments = {"k": k, "wanted": rows}
    key, values = key_argument(index, about, "after_key", after_key)
    columns = [sql.SQL("r.key")]
    if len(about.key) > 1:
        columns = [sql.SQL(f"(r.key).k{number}") for number in range(1, len(about.key) + 1)]
    statement = sql.SQL("SELECT {}, r.label, r.chance, r.neighbors FROM {}({}{}) r").format(
        COMMA.join(columns), function(index, "suggest"), named(arguments), key
    )
    return Call(statement, {**arguments, **values})


def key_argument(
    index: str, about: Description, name: str, key: Any
) -> tuple[sql.Composable, dict[str, Any]]:
    """A key as a further argument of a function; one of several columns is a row of the index's own type."""
    if key is None:
        return sql.SQL(""), {}
    values = parameters(about, key)
    if len(values) == 1:
        return sql.SQL(", {} => {}").format(sql.Identifier(name), sql.Placeholder("key1")), values
    row = sql.SQL(", {} => ROW({})::{}").format(
        sql.Identifier(name), COMMA.join(parts(about)), function(index, "key")
    )
    return row, values


def embedding(about: Description, key: Any) -> Call:
    """The vector of a row, where the caller sees one of that key."""
    statement = sql.SQL("SELECT {}::{} FROM {} WHERE {}").format(
        quoted(about.embedding),
        quoted(about.vector_schema, "vector"),
        sql.SQL(about.source.replace("%", "%%")),
        is_key(about, map(quoted, about.key)),
    )
    return Call(statement, parameters(about, key))


def candidates(index: str, query: npt.ArrayLike, probes: int | None) -> Call:
    return invoke(f"{index}_candidates", given({"query": PackedVector(query), "probes": probes}))


def explain(index: str, query: npt.ArrayLike, k: int, options: SearchOptions) -> Call:
    asked = search_arguments(k, options)
    asked.pop("max_distance", None)
    return invoke(f"{index}_explain", {"query": PackedVector(query), **asked})


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
