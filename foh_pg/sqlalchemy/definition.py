"""What an index is made from, and the calls of schema `foh` that make, change and drop it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import TextClause, text

from foh_pg.index.calls import names_text

# Every argument each time: one text that a driver can prepare. NULL is what an absent one means.
CREATE = """
SELECT foh.create_index(
    name => :name, source => CAST(:source AS pg_catalog.regclass),
    embedding => CAST(:embedding AS pg_catalog.name),
    labels => CAST(:labels AS pg_catalog.name), labels_from => CAST(:labels_from AS pg_catalog.regclass),
    labels_key => CAST(:labels_key AS pg_catalog.text), key => CAST(:key AS pg_catalog.text),
    bits => :bits, dimensions => :dimensions, distance => :distance,
    options => CAST(:options AS pg_catalog.jsonb), include => CAST(:include AS pg_catalog.name[]))
"""
ALTER = """
SELECT foh.alter_index(:name, CAST(:options AS pg_catalog.jsonb), CAST(:include AS pg_catalog.name[]))
"""
DROP = "SELECT foh.drop_index(:name, :if_exists)"


@dataclass(frozen=True)
class Definition:
    """One index, by names. `schema` and `labels_from_schema` are None for the default schema.

    Labels in a table of their own are given by three names: `labels_from` (the table), `labels_key` (its
    column with the key of a row) and `labels` (its column with the label). `key` is None for the primary key.
    Keys of several columns are given as foh.create_index takes them, as an array of SQL.
    """

    name: str
    table: str
    embedding: str
    schema: str | None = None
    labels: str | None = None
    labels_from: str | None = None
    labels_from_schema: str | None = None
    labels_key: str | None = None
    key: str | None = None
    bits: int = 64
    dimensions: int | None = None
    distance: str = "cosine"
    options: Mapping[str, Any] = field(default_factory=dict)
    include: Sequence[str] = ()

    def create(self) -> TextClause:
        labels_from = qualified(self.labels_from, self.labels_from_schema) if self.labels_from else None
        columns = ("name", "embedding", "labels", "labels_key", "key", "bits", "dimensions", "distance")
        return text(CREATE.strip()).bindparams(
            source=qualified(self.table, self.schema),
            labels_from=labels_from,
            options=json.dumps(dict(self.options), sort_keys=True),
            include=names_text(self.include),
            **{column: getattr(self, column) for column in columns},
        )


def alter(name: str, options: Mapping[str, Any]) -> TextClause:
    """Other options, and other included columns, where `include` is among the options."""
    include = options.get("include")
    others = {option: value for option, value in options.items() if option != "include"}
    return text(ALTER.strip()).bindparams(
        name=name,
        options=json.dumps(others, sort_keys=True),
        include=None if include is None else names_text(include),
    )


def drop(name: str, *, if_exists: bool = False) -> TextClause:
    return text(DROP).bindparams(name=name, if_exists=if_exists)


def qualified(table: str, schema: str | None) -> str:
    """The name of a table as `regclass` reads it."""
    parts = [schema, table] if schema else [table]
    return ".".join(map(quoted, parts))


def quoted(name: str) -> str:
    # Not SQLAlchemy's preparer: for most drivers it doubles percent signs, and this text may be a value.
    return '"' + name.replace('"', '""') + '"'
