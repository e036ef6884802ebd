"""LangChain's filters, dictionaries over a document's metadata, as conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from reprlib import repr as shown
from typing import Any

import sqlalchemy as sa

from foh_pg.errors import InputError
from foh_pg.stores.comparing import every, listed, some, unlike
from foh_pg.stores.documents import Documents
from foh_pg.stores.fields import Field, field

Filter = Mapping[str, Any] | sa.ColumnElement[bool] | Callable[[Any], sa.ColumnElement[bool]] | None

ORDER: Mapping[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "$lt": lt,
    "$lte": le,
    "$gt": gt,
    "$gte": ge,
}
OPPOSITE = {"$ne": "$eq", "$nin": "$in"}
OPERATORS = "$eq $ne $lt $lte $gt $gte $between $in $nin $contains $exists $like $ilike $and $or $not"


def condition(documents: Documents, filter: Filter) -> sa.ColumnElement[bool] | None:
    """None, a dictionary, a SQLAlchemy condition, or a function from the table's columns to one."""
    if filter is None or isinstance(filter, sa.ColumnElement):
        return filter
    if isinstance(filter, Mapping):
        return _all(documents, filter) if filter else None
    if callable(filter):
        return filter(documents.table.c)
    raise InputError(f"filter: expected a dictionary or a SQLAlchemy condition, got {shown(filter)}")


def _all(documents: Documents, filter: Any) -> sa.ColumnElement[bool]:
    if not isinstance(filter, Mapping) or not all(isinstance(name, str) for name in filter):
        raise InputError(f"filter: expected a dictionary of fields, got {shown(filter)}")
    return every(_entry(documents, name, value) for name, value in filter.items())


def _entry(documents: Documents, name: str, value: Any) -> sa.ColumnElement[bool]:
    if name in ("$and", "$or"):
        join = every if name == "$and" else some
        return join([_all(documents, each) for each in listed(value, name)])
    if name == "$not":
        return unlike(_all(documents, value))
    if name.startswith("$"):
        raise InputError(f"filter: {name} is neither a field nor one of $and, $or, $not")
    found = field(documents, name)
    if not isinstance(value, Mapping):
        return found.equals(value)
    return every(_compare(found, operator, each) for operator, each in value.items())


def _compare(field: Field, operator: str, value: Any) -> sa.ColumnElement[bool]:
    if operator in ORDER:
        return field.compares(ORDER[operator], value)
    if operator in OPPOSITE:
        return unlike(_compare(field, OPPOSITE[operator], value))
    if operator == "$eq":
        return field.equals(value)
    if operator == "$in":
        return field.among(listed(value, operator))
    if operator == "$between":
        bounds = listed(value, operator)
        if len(bounds) != 2:
            raise InputError(f"filter: $between on {field.name!r} takes two values, not {shown(value)}")
        return every(map(field.compares, (ORDER["$gte"], ORDER["$lte"]), bounds))
    if operator == "$contains":
        return field.contains(value)
    if operator == "$exists":
        return field.exists() if value else sa.not_(field.exists())
    if operator in ("$like", "$ilike"):
        if not isinstance(value, str):
            raise InputError(f"filter: {operator} on {field.name!r} takes a text, not {shown(value)}")
        return field.text().like(value) if operator == "$like" else field.text().ilike(value)
    raise InputError(f"filter: unknown operator {operator!r} on {field.name!r}; there are {OPERATORS}")
