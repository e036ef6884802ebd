"""What a condition of searches means for an index: how many rows pass it, and how it would be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from foh_pg.errors import InputError
from foh_pg.quality.advise.sampling import COLUMNS, Sample, Table, compose

# What can be included, by the names of the catalog; an enum is as good as text.
INCLUDED = (
    *("int2", "int4", "int8", "numeric", "float4", "float8", "bool", "text", "varchar", "uuid"),
    *("date", "timestamp", "timestamptz"),
)
COMPARISONS = ("<", "<=", ">", ">=")
# A condition on labels, of an array of them.
LABELS = {
    "any": "coalesce({0} && {1}::text[], false)",
    "all": "coalesce({0} @> {1}::text[], false)",
    "none": "coalesce(NOT {0} && {1}::text[], true)",
}
COUNT = "SELECT count(*) FILTER (WHERE {condition}) FROM {table} s WHERE {embedding} IS NOT NULL"
# The default of option exact_rows: where labels count, no more rows than that are ranked exactly.
EXACT_ROWS = 1000


@dataclass(frozen=True)
class Condition:
    """A condition, and what it lets pass."""

    match: Mapping[str, Any]
    # Rows of the table with an embedding, and those among them that pass.
    rows: int
    passing: int
    # Whether those that pass are read from the table and ranked exactly, and not found in lists.
    exact: bool

    @property
    def include(self) -> list[str]:
        """The columns that the index must include."""
        return [name for name in self.match if name != "labels"]

    @property
    def text(self) -> str:
        """How such a search would be answered, in a sentence."""
        share = 100 * self.passing / max(self.rows, 1)
        passes = f"{self.passing} of {self.rows} rows pass ({share:.2g} %)"
        if self.exact:
            return f"{passes}: so few are read by an index of your own, or a scan, and ranked exactly."
        included = ", with the columns included" if self.include else ""
        return f"{passes}: the lists of the index answer it{included}."

    def describe(self) -> dict[str, Any]:
        answered = "the rows that pass" if self.exact else "the lists"
        return {"rows": self.passing, "answered_by": answered, "include": self.include, "text": self.text}


def ask(connection: psycopg.Connection[Any], sample: Sample, match: Mapping[str, Any]) -> Condition:
    """Count what passes, in a read-only transaction."""
    table = sample.table
    name = sql.Identifier(table.schema, table.name).as_string(None)
    with connection.transaction(), connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute("SET LOCAL row_security = off")
        types: dict[str, str] = dict(cursor.execute(COLUMNS, [name]).fetchall())
        tests = [_test(table, types, column, asked) for column, asked in match.items()] or [sql.SQL("true")]
        try:
            counted = cursor.execute(compose(COUNT, table, condition=sql.SQL(" AND ").join(tests))).fetchone()
        except psycopg.DataError as error:
            raise InputError(
                f"--match compares a column of {table} with what it cannot hold: {error}"
            ) from error
    assert counted is not None
    kinds = table.labels is not None and not _names_labels(match)
    exact = ranked_exactly(counted[0], sample.rows, sample.X.shape[1], EXACT_ROWS if kinds else None)
    return Condition(match, sample.rows, counted[0], exact)


def ranked_exactly(passing: int, rows: int, dimensions: int, limited: int | None = None) -> bool:
    """Whether it is cheaper to read all rows that pass than lists: as foh._way decides it, by an index."""
    by_table = 250 + max(passing, 1) * (1.5 + 0.004 * dimensions)
    a_list = 4 + 0.12 * max(rows, 1) ** (1 / 3)
    by_lists = 600 + 4 * 30 + 40 * min(max(passing, 1) / max(rows, 1), 1) ** -0.4 * a_list
    return by_table < by_lists and (limited is None or passing <= limited)


def _names_labels(match: Mapping[str, Any]) -> bool:
    asked = match.get("labels")
    return asked is not None and (not isinstance(asked, dict) or bool({"any", "all"} & asked.keys()))


def _test(table: Table, types: Mapping[str, str], column: str, asked: Any) -> sql.Composable:
    """A condition on one column, or on the labels, in SQL."""
    if column == "labels" and table.labels is not None:
        given = asked if isinstance(asked, dict) else {"any": asked if isinstance(asked, list) else [asked]}
        if not given.keys() <= LABELS.keys() or not all(isinstance(some, list) for some in given.values()):
            raise InputError(
                "--match asks for labels with a label, a list, or an object of any, all and none"
            )
        labels = compose("{labels}", table)
        return sql.SQL(" AND ").join(
            sql.SQL(LABELS[how]).format(labels, sql.Literal(list(map(str, some))))
            for how, some in given.items()
        )
    if types.get(column) not in INCLUDED:
        has = f"is of type {types[column]}, which cannot be included" if column in types else "is not there"
        raise InputError(f"--match names column {column!r} of {table}, which {has}")
    given = asked if isinstance(asked, dict) else {"=": asked}
    about = sql.SQL("s.{}").format(sql.Identifier(column))
    return sql.SQL(" AND ").join(_comparison(about, how, value) for how, value in given.items())


def _comparison(about: sql.Composable, how: str, value: Any) -> sql.Composable:
    if how in COMPARISONS:
        return sql.SQL("{} {} {}").format(about, sql.SQL(how), _literal(value))
    if how not in ("=", "not"):
        raise InputError(f"--match has the unknown comparison {how!r}: there are =, not, <, <=, > and >=")
    values = value if isinstance(value, list) else [value]
    among = sql.SQL(", ").join(_literal(one) for one in values if one is not None)
    some = any(one is not None for one in values)
    if how == "not":
        rest = sql.SQL(" AND {} NOT IN ({})").format(about, among) if some else sql.SQL("")
        return sql.SQL("{} IS NOT NULL{}").format(about, rest)
    tests: list[sql.Composable] = [sql.SQL("{} IN ({})").format(about, among)] if some else [sql.SQL("false")]
    tests += [sql.SQL("{} IS NULL").format(about)] if None in values else []
    return sql.SQL("({})").format(sql.SQL(" OR ").join(tests))


def _literal(value: Any) -> sql.Composable:
    """A value that takes the type of the column beside it."""
    if isinstance(value, (dict, list)) or value is None:
        raise InputError(
            "--match compares a column with a value, a list, null, or an object of =, not, <, ..."
        )
    return sql.Literal(str(value).lower() if isinstance(value, bool) else str(value))
