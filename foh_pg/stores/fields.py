"""One entry of a document's metadata, in a JSONB column or in a column of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.errors import InputError
from foh_pg.stores.documents import Documents
from foh_pg.stores.included import comparable

Condition = sa.ColumnElement[bool]
Compare = Callable[[Any, Any], Condition]


def field(documents: Documents, name: str, *inside: str) -> Field:
    """The entry of that name, or what is inside of it; an error where the table keeps no such entry."""
    if isinstance(documents.metadata, sa.Column):
        if not inside and name in documents.included:
            return _Included(documents.metadata, documents.included[name], name)
        return _Json(documents.metadata, name, *inside)
    known = documents.metadata
    name = ".".join([name, *inside])
    if name not in known:
        raise InputError(
            f"filter: {documents.table.key!r} keeps no metadata {name!r}; it keeps {', '.join(known)}"
        )
    return Plain(known[name], name)


class _Json:
    """An entry of a JSONB column, or what is inside of one."""

    def __init__(self, column: sa.Column[Any], *path: str) -> None:
        self.column = column
        self.path = path
        self.name = ".".join(path)
        self.value = column[path[0]] if len(path) == 1 else column[path]

    def equals(self, value: Any) -> Condition:
        return self.value == self._literal(value)

    def among(self, values: Sequence[Any]) -> Condition:
        # One value for the driver, however many there are.
        every = sa.func.jsonb_array_elements(self._literal(list(values)))
        return self.value.in_(sa.select(every))

    def compares(self, operator: Compare, value: Any) -> Condition:
        # jsonb orders values of different types too; a filter compares like with like.
        other = self._literal(value)
        same = sa.func.jsonb_typeof(self.value) == sa.func.jsonb_typeof(other)
        return sa.and_(same, operator(self.value, other))

    def contains(self, value: Any) -> Condition:
        sought: Any = [value]
        for name in reversed(self.path):
            sought = {name: sought}
        return self.column.contains(self._literal(sought))

    def exists(self) -> Condition:
        if len(self.path) > 1:
            return self.value.is_not(None)
        return self.column.has_key(self.name)  # type: ignore[no-any-return]

    def text(self) -> sa.ColumnElement[str]:
        return self.value.astext  # type: ignore[no-any-return]

    def _literal(self, value: Any) -> sa.ColumnElement[Any]:
        try:
            json.dumps(value)
        except TypeError as error:
            raise InputError(
                f"filter: {self.name!r} is JSON, and {error}: compare with a text or a number"
            ) from error
        return sa.cast(sa.literal(value, JSONB), JSONB)


class Plain:
    """An entry that is a column."""

    def __init__(self, column: sa.Column[Any], name: str) -> None:
        self.value = column
        self.name = name

    def equals(self, value: Any) -> Condition:
        return self.value.is_(None) if value is None else self.value == self._literal(value)

    def among(self, values: Sequence[Any]) -> Condition:
        known = [value for value in values if value is not None]
        empty = [self.value.is_(None)] if len(known) < len(values) else []
        return sa.or_(self.value.in_(known), *empty)

    def compares(self, operator: Compare, value: Any) -> Condition:
        return operator(self.value, self._literal(value))

    def contains(self, value: Any) -> Condition:
        if not isinstance(self.value.type, (sa.ARRAY, JSONB)):
            raise InputError(f"filter: {self.name!r} is {self.value.type}, which has no values inside")
        return self.value.contains([value])

    def exists(self) -> Condition:
        return self.value.is_not(None)

    def text(self) -> sa.ColumnElement[str]:
        return sa.cast(self.value, sa.Text)

    def _literal(self, value: Any) -> sa.ColumnElement[Any]:
        """SQLAlchemy reads None, True and False as words of SQL, which take few operators."""
        return sa.literal(value, self.value.type)


class _Included(_Json):
    """An entry that has a column beside the JSON, of one kind of values: comparisons with these read it."""

    def __init__(self, metadata: sa.Column[Any], column: sa.Column[Any], name: str) -> None:
        super().__init__(metadata, name)
        self.beside = Plain(column, name)

    def equals(self, value: Any) -> Condition:
        known = comparable(self.beside.value, value)
        return super().equals(value) if known is None else self.beside.equals(known)

    def among(self, values: Sequence[Any]) -> Condition:
        known = [comparable(self.beside.value, value) for value in values]
        return super().among(values) if None in known else self.beside.among(known)

    def compares(self, operator: Compare, value: Any) -> Condition:
        known = comparable(self.beside.value, value)
        return super().compares(operator, value) if known is None else self.beside.compares(operator, known)


Field = _Json | Plain
