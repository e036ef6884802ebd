"""LangChain's filters, dictionaries over a document's metadata, as conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from foh_pg.errors import InputError
from foh_pg.stores.documents import Documents
from foh_pg.stores.fields import Field, field
from foh_pg.stores.filter_parts import check_parts, listed, shown

Filter = Mapping[str, Any] | sa.ColumnElement[bool] | Callable[[Any], sa.ColumnElement[bool]] | None

COMPARE: dict[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "$lt": lambda a, b: a < b,
    "$lte": lambda a, b: a <= b,
    "$gt": lambda a, b: a > b,
    "$gte": lambda a, b: a >= b,
}
OPERATORS = "$eq $ne $lt $lte $gt $gte $between $in $nin $contains $exists $like $ilike $and $or $not"


def condition(documents: Documents, filter: Filter) -> sa.ColumnElement[bool] | None:
    """None, a dictionary, a SQLAlchemy condition, or a function from the table's columns to one."""
    if filter is None or isinstance(filter, sa.ColumnElement):
        return filter
    if isinstance(filter, Mapping):
        check_parts(filter)
        return _all(documents, filter) if filter else None
    if callable(filter):
        return filter(documents.table.c)
    raise InputError(f"filter: expected a dictionary or a SQLAlchemy condition, got {shown(filter)}")


def _all(documents: Documents, filter: Any) -> sa.ColumnElement[bool]:
    if not isinstance(filter, Mapping):
        raise InputError(f"filter: expected a dictionary of fields, got {shown(filter)}")
    return sa.and_(sa.true(), *(_entry(documents, name, value) for name, value in filter.items()))


def _entry(documents: Documents, name: str, value: Any) -> sa.ColumnElement[bool]:
    if name in ("$and", "$or"):
        join = sa.and_ if name == "$and" else sa.or_
        return join(
            sa.true() if name == "$and" else sa.false(),
            *(_all(documents, each) for each in listed(value, name)),
        )
    if name == "$not":
        return sa.not_(sa.func.coalesce(_all(documents, value), False))
    if name.startswith("$"):
        raise InputError(f"filter: {name} is neither a field nor one of $and, $or, $not")
    found = field(documents, name)
    if not isinstance(value, Mapping):
        return found.equals(value)
    return sa.and_(sa.true(), *(_operator(found, operator, each) for operator, each in value.items()))


def _operator(field: Field, operator: str, value: Any) -> sa.ColumnElement[bool]:
    if operator == "$eq":
        return field.equals(value)
    if operator == "$ne":
        return sa.not_(sa.func.coalesce(field.equals(value), False))
    if operator in COMPARE:
        return field.compares(COMPARE[operator], value)
    if operator == "$between":
        bounds = list(listed(value, operator))
        if len(bounds) != 2:
            raise InputError(f"filter: $between on {field.name!r} takes two values, not {shown(value)}")
        low, high = bounds
        return sa.and_(field.compares(COMPARE["$gte"], low), field.compares(COMPARE["$lte"], high))
    if operator in ("$in", "$nin"):
        found = field.among(list(listed(value, operator)))
        return found if operator == "$in" else sa.not_(sa.func.coalesce(found, False))
    if operator == "$contains":
        return field.contains(value)
    if operator == "$exists":
        return field.exists() if value else sa.not_(field.exists())
    if operator in ("$like", "$ilike"):
        if not isinstance(value, str):
            raise InputError(f"filter: {operator} on {field.name!r} takes a text, not {shown(value)}")
        return field.text().like(value) if operator == "$like" else field.text().ilike(value)
    raise InputError(f"filter: unknown operator {operator!r} on {field.name!r}; there are {OPERATORS}")
