"""What a store says to the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from langchain_core.documents import Document
from sqlalchemy.dialects.postgresql import insert

from foh_pg.langchain.filters import Filter, condition
from foh_pg.sqlalchemy import foh_explain, foh_search
from foh_pg.sqlalchemy.search import equal
from foh_pg.stores.documents import Documents, VectorIn
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


def delete(connection: sa.Connection, documents: Documents, ids: Sequence[str]) -> bool:
    keys = [documents.key_of(each) for each in ids]
    connection.execute(sa.delete(documents.table).where(documents.key.in_(keys)))
    return True


def get(connection: sa.Connection, documents: Documents, ids: Sequence[str]) -> list[Document]:
    """The documents that are there, in the order of their ids."""
    keys = [documents.key_of(each) for each in ids]
    rows = connection.execute(sa.select(*_columns(documents)).where(documents.key.in_(keys))).mappings()
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
    nearest = foh_search(
        documents.table, vector, filter=condition(documents, filter), index=documents.index, **arguments
    )
    key, distance, score = nearest.c
    # A search that reads no row (shortlist 0) knows an estimate of the distance, which is its score.
    columns = [*_columns(documents), sa.func.coalesce(distance, score).label("foh_distance")]
    if with_vectors:
        embedding = sa.cast(documents.embedding, VectorIn(None, documents.vector_schema))
        columns.append(embedding.label("foh_vector"))
    joined = sa.select(*columns).join_from(documents.table, nearest, equal(documents.key, key))
    with comparing(filter):
        rows = connection.execute(joined.order_by(score)).mappings().all()
    return [
        Found(_document(documents, row), row["foh_distance"], list(row.get("foh_vector", ()))) for row in rows
    ]


def explain(
    connection: sa.Connection,
    documents: Documents,
    vector: Sequence[float],
    *,
    filter: Filter = None,
    **arguments: Any,
) -> dict[str, str]:
    wanted = condition(documents, filter)
    with comparing(filter):
        return foh_explain(
            connection, documents.table, vector, filter=wanted, index=documents.index, **arguments
        )


def _columns(documents: Documents) -> list[Any]:
    return [documents.key, documents.content, *documents.metadata_columns()]


def _document(documents: Documents, row: Mapping[Any, Any]) -> Document:
    return Document(
        id=str(row[documents.key]),
        page_content=row[documents.content] or "",
        metadata=documents.metadata_of(row),
    )
