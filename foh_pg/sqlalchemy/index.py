"""An index as part of a table's declaration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, event, text
from sqlalchemy.schema import SchemaItem

from foh_pg.errors import InputError
from foh_pg.index.calls import columns_text
from foh_pg.sqlalchemy import definition

# Kept on the MetaData: what is in Table.info, Alembic would write into the application's migrations.
DECLARED = "foh_pg.indexes"

INSTALLED = text("SELECT pg_catalog.to_regclass('foh.index') IS NOT NULL")


class FOHIndex(SchemaItem):
    """A FOH index, in `__table_args__` or on its own after the class.

    >>> class Product(Base):
    ...     __tablename__ = "products"
    ...     id: Mapped[int] = mapped_column(primary_key=True)
    ...     embedding: Mapped[Any] = mapped_column(Vector(512))
    ...     tags: Mapped[list[str]] = mapped_column(ARRAY(Text))
    ...     __table_args__ = (FOHIndex("products_foh", "embedding", labels="tags", bits=64),)

    Columns are names or attributes. `labels` may be a column of another table, with `labels_key` the column
    there that holds the key of this one. `key` names the columns of a unique index, where that is the key of
    the index in place of the primary key. `labels_key` and `key` may be lists. `include`: columns for
    conditions of searches. All else are options as `foh.create_index` knows them. `MetaData.create_all()`
    makes the index with its table; Alembic's autogenerate compares it.
    """

    __visit_name__ = "foh_index"

    table: Table

    def __init__(
        self,
        name: str,
        embedding: Any,
        *,
        labels: Any = None,
        labels_key: Any = None,
        key: Any = None,
        bits: int = 64,
        dimensions: int | None = None,
        distance: str = "cosine",
        include: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        self.name = name
        self.bits = bits
        self.dimensions = dimensions
        self.distance = distance
        self.options = options
        self._embedding = _column(embedding)
        self._labels = None if labels is None else _column(labels)
        self._labels_key, self._key, self._include = map(_columns, (labels_key, key, include))
        owner = getattr(self._embedding, "table", None)
        if isinstance(owner, Table):
            self._set_parent_with_dispatch(owner)

    def _set_parent(self, parent: Any, **kw: Any) -> None:
        others = parent.metadata.info.setdefault(DECLARED, {})
        known = others.get(self.name)
        if known is not None and known.table.key != parent.key:
            raise InputError(
                f"FOHIndex {self.name!r} is declared on {known.table.key!r} and on {parent.key!r}: "
                "names of indexes are unique in a database, rename one"
            )
        self.table = parent
        others[self.name] = self
        event.listen(parent, "after_create", self._create_alone)
        event.listen(parent.metadata, "after_create", self._create_with_all)
        event.listen(parent, "before_drop", self._drop)

    @property
    def definition(self) -> definition.Definition:
        """This index by names, checked against the table."""
        owner = getattr(self._labels, "table", None)
        elsewhere = isinstance(owner, Table) and owner is not self.table
        labels_from = owner if isinstance(owner, Table) else self.table
        return definition.Definition(
            name=self.name,
            table=self.table.name,
            schema=self.table.schema,
            embedding=self._name("embedding", self._embedding, self.table),
            labels=None if self._labels is None else self._name("labels", self._labels, labels_from),
            labels_from=labels_from.name if elsewhere else None,
            labels_from_schema=labels_from.schema if elsewhere else None,
            labels_key=columns_text(self._names("labels_key", self._labels_key, labels_from) or None),
            key=columns_text(self._names("key", self._key, self.table) or None),
            bits=self.bits,
            dimensions=self.dimensions,
            distance=self.distance,
            options=self.options,
            include=tuple(self.included),
        )

    @property
    def included(self) -> list[str]:
        """The names of the included columns."""
        return self._names("include", self._include, self.table)

    @property
    def key_columns(self) -> list[Column[Any]]:
        """The columns of the key: those declared, or the primary key."""
        names = self._names("key", self._key, self.table)
        declared = [column for column in self.table.columns if column.name in names]
        return declared or list(self.table.primary_key.columns)

    def _names(self, role: str, columns: Sequence[str | Column[Any]], table: Table) -> list[str]:
        return [self._name(role, column, table) for column in columns]

    def _name(self, role: str, column: str | Column[Any], table: Table) -> str:
        name = column if isinstance(column, str) else column.name
        # An attribute is a key of the table, whatever its column is called.
        found = table.c.get(name) if isinstance(column, str) else column
        if found is None or found.name not in {each.name for each in table.c}:
            raise InputError(
                f"FOHIndex {self.name!r}: {table.key!r} has no column {name!r} ({role}); "
                f"it has {', '.join(each.name for each in table.c)}"
            )
        return str(found.name)

    def _create_alone(self, target: Table, connection: Connection, **kw: Any) -> None:
        if not kw.get("_is_metadata_operation"):
            connection.execute(self.definition.create())

    def _create_with_all(self, target: MetaData, connection: Connection, **kw: Any) -> None:
        # After all tables: that of the labels may come later than this one.
        if self.table in kw.get("tables", ()):
            connection.execute(self.definition.create())

    def _drop(self, target: Table, connection: Connection, **kw: Any) -> None:
        if connection.scalar(INSTALLED):
            connection.execute(definition.drop(self.name, if_exists=True))

    def __repr__(self) -> str:
        column = self._embedding
        return f"FOHIndex({self.name!r}, {(column if isinstance(column, str) else column.name)!r})"


def declared(*catalogs: MetaData) -> Iterator[FOHIndex]:
    """The indexes declared on tables of these MetaData."""
    for metadata in catalogs:
        yield from metadata.info.get(DECLARED, {}).values()


def _column(given: Any) -> str | Column[Any]:
    if hasattr(given, "__clause_element__"):
        given = given.__clause_element__()
    if not isinstance(given, (str, Column)):
        raise InputError(f"expected the name of a column or a mapped attribute, got {given!r}")
    return given


def _columns(given: Any) -> list[str | Column[Any]]:
    """One column, several or none."""
    if given is None:
        return []
    return [_column(each) for each in (given if isinstance(given, (list, tuple)) else [given])]
