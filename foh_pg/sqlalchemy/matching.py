"""A SQLAlchemy condition as the argument `match` of a search, as far as it is one on included columns.

Comparisons of a column with a value that are joined by AND can be told as data; the rest of the condition is
left to `filter`.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import (
    BinaryExpression,
    BindParameter,
    BooleanClauseList,
    ColumnElement,
    Grouping,
)
from sqlalchemy.types import ARRAY

from foh_pg.index.calls import as_json
from foh_pg.sqlalchemy.filter import plain

COMPARISONS = {
    operators.eq: "=",
    operators.lt: "<",
    operators.le: "<=",
    operators.gt: ">",
    operators.ge: ">=",
    operators.in_op: "=",
}
# Which values compare with a column as they do once they have the type of the column. An integer column and
# 1.5, or a real one and 0.1, do not.
ALIKE: list[tuple[type[Any], tuple[type[Any], ...]]] = [
    (sa.Boolean, (bool,)),
    (sa.Integer, (int,)),
    (sa.REAL, ()),
    (sa.Numeric, (int, float, Decimal)),
    (sa.Enum, ()),
    (sa.String, (str,)),
    (sa.Uuid, (uuid.UUID,)),
    (sa.DateTime, (datetime.datetime,)),
    (sa.Date, (datetime.date,)),
]

Tests = dict[str, dict[str, ColumnElement[Any]]]


def matched(
    condition: Any, included: Mapping[Any, str]
) -> tuple[ColumnElement[Any], ColumnElement[bool] | None]:
    """The argument `match` for a condition, and what is left of it; `included`: columns and their names."""
    if condition is None or not included:
        return sa.null(), condition
    tests: Tests = {}
    rest = [part for part in _parts(sa.and_(condition)) if not _take(part, included, tests)]
    if not tests:
        return sa.null(), condition
    pairs: list[Any] = []
    for name, comparisons in tests.items():
        compared = [each for operator, value in comparisons.items() for each in (sa.literal(operator), value)]
        pairs += [sa.literal(name), sa.func.pg_catalog.jsonb_build_object(*compared)]
    return sa.func.pg_catalog.jsonb_build_object(*pairs, type_=postgresql.JSONB), sa.and_(
        *rest
    ) if rest else None


def told(match: Mapping[str, Any]) -> ColumnElement[Any]:
    """A condition that was given as data."""
    return sa.cast(sa.bindparam(None, as_json(dict(match)), sa.Text, unique=True), postgresql.JSONB)


def _parts(condition: Any) -> list[Any]:
    if isinstance(condition, Grouping):
        return _parts(condition.element)
    if isinstance(condition, BooleanClauseList) and condition.operator is operators.and_:
        return [part for clause in condition.clauses for part in _parts(clause)]
    return [condition]


def _take(part: Any, included: Mapping[Any, str], tests: Tests) -> bool:
    """Put a comparison to the others, where it can be told as data."""
    if not isinstance(part, BinaryExpression) or part.operator not in COMPARISONS:
        return False
    # The ORM marks columns: what it marked is equal to the column itself, and not the same.
    name = next((included[column] for column in included if part.left.compare(column)), None)
    value = part.right
    if name is None or not isinstance(value, BindParameter):
        return False
    operator, among = COMPARISONS[part.operator], part.operator is operators.in_op
    given = value.value if among else [value.value]
    if value.required or not isinstance(given, (list, tuple)) or not _alike(part.left.type, given):
        return False
    known = tests.setdefault(name, {})
    if operator in known:
        return False
    type_ = plain(part.left.type)
    if among:
        value = sa.bindparam(value.key, list(given), type_=ARRAY(type_), unique=value.unique)
    known[operator] = sa.func.pg_catalog.to_jsonb(sa.cast(value, ARRAY(type_) if among else type_))
    return True


def _alike(column: Any, values: Any) -> bool:
    for kind, python in ALIKE:
        if isinstance(column, kind):
            return all(type(value) in python for value in values)
    return False
