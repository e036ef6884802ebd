"""One entry of a document's metadata, in a JSONB column or in a column of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.errors import InputError
from foh_pg.stores.documents import Documents
from foh_pg.stores.included import comparable


def field(documents: Documents, name: str, *inside: str) -> Field:
    """The entry of that name, or what is inside of it; an error where the table keeps no such entry."""
    if isinstance(documents.metadata, sa.Column):
        if not inside and name in documents.included:
            return _Included(documents.metadata, documents.included[name], name)
        return _Json(documents.metadata, name, *inside)
    return _Plain(documents, ".".join([name, *inside]))


class _Json:
    """An entry of a JSONB column, or what is inside of one."""

    def __init__(self, column: sa.Column[Any], *path: str) -> None:
        self.column = column
        self.path = path
        self.name = ".".join(path)
        self.value = column[path[0]] if len(path) == 1 else column[path]

    def equals(self, value: Any) -> sa.ColumnElement[bool]:
        return self.value == self._literal(value)

    def among(self, values: Sequence[Any]) -> sa.ColumnElement[bool]:
        # One value for the driver, however many there are.
        every = sa.func.jsonb_array_elements(self._literal(list(values)))
        return self.value.in_(sa.select(every))

    def compares(
        self, operator: Callable[[Any, Any], sa.ColumnElement[bool]], value: Any
    ) -> sa.ColumnElement[bool]:
        # jsonb orders values of different types too; a filter compares like with like.
        other = self._literal(value)
        same = sa.func.jsonb_typeof(self.value) == sa.func.jsonb_typeof(other)
        return sa.and_(same, operator(self.value, other))

    def contains(self, value: Any) -> sa.ColumnElement[bool]:
        sought: Any = [value]
        for name in reversed(self.path):
            sought = {name: sought}
        return self.column.contains(self._literal(sought))

    def exists(self) -> sa.ColumnElement[bool]:
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


class _Included(_Json):
    """An entry that has a column beside the JSON, of one kind of values: comparisons with these read it."""

    def __init__(self, metadata: sa.Column[Any], column: sa.Column[Any], name: str) -> None:
        super().__init__(metadata, name)
        self.beside = column

    def equals(self, value: Any) -> sa.ColumnElement[bool]:
        known = comparable(self.beside, value)
        return super().equals(value) if known is None else self.beside == sa.literal(known, self.beside.type)

    def among(self, values: Sequence[Any]) -> sa.ColumnElement[bool]:
        known = [comparable(self.beside, value) for value in values]
        return super().among(values) if None in known else self.beside.in_(known)

    def compares(
        self, operator: Callable[[Any, Any], sa.ColumnElement[bool]], value: Any
    ) -> sa.ColumnElement[bool]:
        known = comparable(self.beside, value)
        if known is None:
            return super().compares(operator, value)
        return operator(self.beside, sa.literal(known, self.beside.type))


class _Plain:
    """An entry that is a column."""

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
        return self.value.is_(None) if value is None else self.value == self._literal(value)

    def among(self, values: Sequence[Any]) -> sa.ColumnElement[bool]:
        known = [value for value in values if value is not None]
        empty = [self.value.is_(None)] if len(known) < len(values) else []
        return sa.or_(self.value.in_(known), *empty)

    def compares(
        self, operator: Callable[[Any, Any], sa.ColumnElement[bool]], value: Any
    ) -> sa.ColumnElement[bool]:
        return operator(self.value, self._literal(value))

    def contains(self, value: Any) -> sa.ColumnElement[bool]:
        if not isinstance(self.value.type, (sa.ARRAY, JSONB)):
            raise InputError(f"filter: {self.name!r} is {self.value.type}, which has no values inside")
        return self.value.contains([value])

    def _literal(self, value: Any) -> sa.ColumnElement[Any]:
        """SQLAlchemy reads None, True and False as words of SQL, which take few operators."""
        return sa.literal(value, self.value.type)

    def exists(self) -> sa.ColumnElement[bool]:
        return self.value.is_not(None)

    def text(self) -> sa.ColumnElement[str]:
        return sa.cast(self.value, sa.Text)


Field = _Json | _Plain


def labels_of(meta: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The values of these entries of the metadata."""
    labels: list[str] = []
    for name in names:
        value = meta.get(name)
        if isinstance(value, (list, tuple, set)):
            labels.extend(map(str, value))
        elif value is not None:
            labels.append(str(value))
    return labels
