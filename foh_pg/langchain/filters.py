"""LangChain's filters, dictionaries over a document's metadata, as conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.errors import InputError
from foh_pg.langchain.documents import Documents

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
        return _all(documents, filter) if filter else None
    if callable(filter):
        return filter(documents.table.c)
    raise InputError(f"filter: expected a dictionary or a SQLAlchemy condition, got {filter!r}")


def _all(documents: Documents, filter: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    return sa.and_(sa.true(), *(_entry(documents, name, value) for name, value in filter.items()))


def _entry(documents: Documents, name: str, value: Any) -> sa.ColumnElement[bool]:
    if name in ("$and", "$or"):
        join = sa.and_ if name == "$and" else sa.or_
        return join(sa.true() if name == "$and" else sa.false(), *(_all(documents, each) for each in value))
    if name == "$not":
        return sa.not_(sa.func.coalesce(_all(documents, value), False))
    if name.startswith("$"):
        raise InputError(f"filter: {name} stands where a field or one of $and, $or, $not is expected")
    field: Field = (
        _Json(documents.metadata, name)
        if isinstance(documents.metadata, sa.Column)
        else _Plain(documents, name)
    )
    if not isinstance(value, Mapping):
        return field.equals(value)
    return sa.and_(sa.true(), *(_operator(field, operator, each) for operator, each in value.items()))


def _operator(field: Field, operator: str, value: Any) -> sa.ColumnElement[bool]:
    if operator == "$eq":
        return field.equals(value)
    if operator == "$ne":
        return sa.not_(sa.func.coalesce(field.equals(value), False))
    if operator in COMPARE:
        return field.compares(COMPARE[operator], value)
    if operator == "$between":
        low, high = value
        return sa.and_(field.compares(COMPARE["$gte"], low), field.compares(COMPARE["$lte"], high))
    if operator in ("$in", "$nin"):
        found = sa.or_(sa.false(), *(field.equals(each) for each in value))
        return found if operator == "$in" else sa.not_(sa.func.coalesce(found, False))
    if operator == "$contains":
        return field.contains(value)
    if operator == "$exists":
        return field.exists() if value else sa.not_(field.exists())
    if operator in ("$like", "$ilike"):
        return field.text().like(value) if operator == "$like" else field.text().ilike(value)
    raise InputError(f"filter: unknown operator {operator!r} on {field.name!r}; there are {OPERATORS}")


class Field(ABC):
    """One entry of the metadata."""

    name: str

    @abstractmethod
    def equals(self, value: Any) -> sa.ColumnElement[bool]:
        """Whether the entry has this value."""

    @abstractmethod
    def compares(
        self, operator: Callable[[Any, Any], sa.ColumnElement[bool]], value: Any
    ) -> sa.ColumnElement[bool]:
        """Whether the operator holds between the entry and this value."""

    @abstractmethod
    def contains(self, value: Any) -> sa.ColumnElement[bool]:
        """Whether this is one of the values of the entry."""

    @abstractmethod
    def exists(self) -> sa.ColumnElement[bool]:
        """Whether there is such an entry."""

    @abstractmethod
    def text(self) -> sa.ColumnElement[str]:
        """The entry as text."""


class _Json(Field):
    def __init__(self, column: sa.Column[Any], name: str) -> None:
        self.column = column
        self.name = name
        self.value = column[name]

    def equals(self, value: Any) -> sa.ColumnElement[bool]:
        return self.value == sa.cast(sa.literal(value, JSONB), JSONB)

    def compares(
        self, operator: Callable[[Any, Any], sa.ColumnElement[bool]], value: Any
    ) -> sa.ColumnElement[bool]:
        # jsonb orders values of different types too; a filter compares like with like.
        other = sa.cast(sa.literal(value, JSONB), JSONB)
        same = sa.func.jsonb_typeof(self.value) == sa.func.jsonb_typeof(other)
        return sa.and_(same, operator(self.value, other))

    def contains(self, value: Any) -> sa.ColumnElement[bool]:
        return self.column.contains({self.name: [value]})

    def exists(self) -> sa.ColumnElement[bool]:
        return self.column.has_key(self.name)  # type: ignore[no-any-return]

    def text(self) -> sa.ColumnElement[str]:
        return self.value.astext  # type: ignore[no-any-return]


class _Plain(Field):
    def __init__(self, documents: Documents, name: str) -> None:
        assert isinstance(documents.metadata, Mapping)
        if name not in documents.metadata:
            raise InputError(
                f"filter: {documents.table.key!r} keeps no metadata {name!r}; "
                f"it keeps {', '.join(documents.metadata)}"
            )
        self.name = name
        self.value = documents.metadata[name]

    def equals(self, value: Any) -> sa.ColumnElement[bool]:
        return self.value.is_(None) if value is None else self.value == value

    def compares(
        self, operator: Callable[[Any, Any], sa.ColumnElement[bool]], value: Any
    ) -> sa.ColumnElement[bool]:
        return operator(self.value, value)

    def contains(self, value: Any) -> sa.ColumnElement[bool]:
        return self.value.contains([value])

    def exists(self) -> sa.ColumnElement[bool]:
        return self.value.is_not(None)

    def text(self) -> sa.ColumnElement[str]:
        return sa.cast(self.value, sa.Text)
