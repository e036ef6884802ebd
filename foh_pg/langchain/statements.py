"""What a store says to the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from langchain_core.documents import Document
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.functions import Function

from foh_pg.langchain.filters import Filter, condition
from foh_pg.sqlalchemy import foh_search
from foh_pg.sqlalchemy.search import equal
from foh_pg.sqlalchemy.types import QueryVector
from foh_pg.stores.documents import Documents, VectorIn
from foh_pg.stores.filter_parts import comparing

# pgvector's functions, by the distance of an index. Of the inner product, the negative: nearer is smaller.
DISTANCES = {"cosine": "cosine_distance", "l2": "l2_distance", "ip": "vector_negative_inner_product"}


class Found(NamedTuple):
    document: Document
    distance: float
    vector: list[float]


def add(connection: sa.Connection, documents: Documents, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Insert rows, or replace what has their key; the keys, as text."""
    key = documents.key
    return (
        [str(connection.execute(_upsert(documents, row)).scalar_one()) for row in rows]
        if any(key.name not in row for row in rows)
        else _add_all(connection, documents, rows)
    )


def _add_all(connection: sa.Connection, documents: Documents, rows: Sequence[dict[str, Any]]) -> list[str]:
    connection.execute(_upsert(documents, rows[0], returning=False), rows)
    return [str(row[documents.key.name]) for row in rows]


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
    distance: str,
    filter: Filter,
    with_vectors: bool,
    **arguments: Any,
) -> list[Found]:
    nearest = foh_search(
        documents.table, vector, filter=condition(documents, filter), index=documents.index, **arguments
    )
    key, _, score = nearest.c
    embedding = sa.cast(documents.embedding, VectorIn(None, documents.vector_schema))
    exact: Function[float] = Function(
        DISTANCES[distance],
        embedding,
        sa.bindparam(None, vector, QueryVector, unique=True),
        packagenames=(sa.sql.quoted_name(documents.vector_schema, quote=True),),
        type_=sa.Double,
    )
    columns = [*_columns(documents), exact.label("foh_exact")]
    if with_vectors:
        columns.append(embedding.label("foh_vector"))
    joined = sa.select(*columns).join_from(documents.table, nearest, equal(documents.key, key))
    with comparing(filter):
        rows = connection.execute(joined.order_by(score)).mappings().all()
    return [
        Found(_document(documents, row), row["foh_exact"], list(row["foh_vector"]) if with_vectors else [])
        for row in rows
    ]


def _columns(documents: Documents) -> list[Any]:
    return [documents.key, documents.content, *documents.metadata_columns()]


def _document(documents: Documents, row: Mapping[Any, Any]) -> Document:
    return Document(
        id=str(row[documents.key]),
        page_content=row[documents.content] or "",
        metadata=documents.metadata_of(row),
    )
