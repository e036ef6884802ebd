"""One entry of a document's metadata, in a JSONB column or in a column of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.errors import InputError
from foh_pg.stores.documents import Documents


def field(documents: Documents, name: str, *inside: str) -> Field:
    """The entry of that name, or what is inside of it; an error where the table keeps no such entry."""
    if isinstance(documents.metadata, sa.Column):
        return _Json(documents.metadata, name, *inside)
    return _Plain(documents, ".".join([name, *inside]))


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
    def __init__(self, column: sa.Column[Any], *path: str) -> None:
        self.column = column
        self.path = path
        self.name = ".".join(path)
        self.value = column[path[0]] if len(path) == 1 else column[path]

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
        sought: Any = [value]
        for name in reversed(self.path):
            sought = {name: sought}
        return self.column.contains(sought)

    def exists(self) -> sa.ColumnElement[bool]:
        if len(self.path) > 1:
            return self.value.is_not(None)
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
