"""What a store says to the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from langchain_core.documents import Document
from sqlalchemy.dialects.postgresql import insert

from foh_pg.langchain.filters import Filter, condition
from foh_pg.stores.documents import DISTANCE, VECTOR, Documents
from foh_pg.stores.filter_parts import comparing


class Found(NamedTuple):
    document: Document
    distance: float
    vector: list[float]


def add(connection: sa.Connection, documents: Documents, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Insert rows, or replace what has their key; the keys, as text."""
    key = documents.key.name
    if any(key not in row for row in rows):
        return [str(connection.execute(_upsert(documents, row)).scalar_one()) for row in rows]
    connection.execute(_upsert(documents, rows[0], returning=False), rows)
    return [str(row[key]) for row in rows]


def _upsert(documents: Documents, row: Mapping[str, Any], *, returning: bool = True) -> Any:
    statement = insert(documents.table)
    replaced = {name: statement.excluded[name] for name in row if name != documents.key.name}
    statement = statement.on_conflict_do_update(index_elements=[documents.key], set_=replaced)
    return statement.values(row).returning(documents.key) if returning else statement


def get(connection: sa.Connection, documents: Documents, ids: Sequence[str]) -> list[Document]:
    """The documents that are there, in the order of their ids."""
    keys = [documents.key_of(each) for each in ids]
    rows = connection.execute(sa.select(*documents.columns()).where(documents.key.in_(keys))).mappings()
    found = {row[documents.key]: _document(documents, row) for row in rows}
    return [found[key] for key in keys if key in found]


def search(
    connection: sa.Connection,
    documents: Documents,
    vector: Sequence[float],
    *,
    filter: Filter = None,
    with_vectors: bool = False,
    **arguments: Any,
) -> list[Found]:
    wanted = condition(documents, filter)
    with comparing(filter):
        rows = documents.nearest(connection, vector, wanted, vector=with_vectors, **arguments)
    return [Found(_document(documents, row), row[DISTANCE], list(row.get(VECTOR, ()))) for row in rows]


def explain(
    connection: sa.Connection,
    documents: Documents,
    vector: Sequence[float],
    *,
    filter: Filter = None,
    **arguments: Any,
) -> dict[str, str]:
    with comparing(filter):
        return documents.explain(connection, vector, condition(documents, filter), **arguments)


def _document(documents: Documents, row: Mapping[Any, Any]) -> Document:
    return Document(
        id=str(row[documents.key]),
        page_content=row[documents.content] or "",
        metadata=documents.metadata_of(row),
    )
