"""What a store says to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from sqlalchemy.dialects.postgresql import insert

from foh_pg.haystack.documents import document
from foh_pg.haystack.filters import FilterError, condition
from foh_pg.stores.documents import SCORE, Documents
from foh_pg.stores.filter_parts import comparing

Filters = Mapping[str, Any] | None


def write(
    connection: sa.Connection, table: Documents, rows: Sequence[dict[str, Any]], policy: DuplicatePolicy
) -> int:
    """The number of documents written. The caller has opened a transaction, which an error undoes."""
    key = table.key
    statement = insert(table.table)
    if policy == DuplicatePolicy.OVERWRITE:
        replaced = {name: statement.excluded[name] for name in rows[0] if name != key.name}
        statement = statement.on_conflict_do_update(index_elements=[key], set_=replaced)
        # One statement cannot write a row twice: of documents with the same id the last one stays.
        connection.execute(statement, list({row[key.name]: row for row in rows}.values()))
        return len(rows)
    statement = statement.on_conflict_do_nothing(index_elements=[key])
    written = list(connection.execute(statement.returning(key), rows).scalars())
    if len(written) < len(rows) and policy != DuplicatePolicy.SKIP:
        there = Counter(row[key.name] for row in rows) - Counter(written)
        raise DuplicateDocumentError(
            f"{', '.join(map(repr, there))} would be in {table.table.name!r} twice: pass "
            "policy=DuplicatePolicy.OVERWRITE or SKIP"
        )
    return len(written)


def count(connection: sa.Connection, table: Documents) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(table.table)) or 0)


def select(connection: sa.Connection, table: Documents, filters: Filters) -> list[Document]:
    """In the order in which they were written, where the table keeps it; else in that of the keys."""
    order = table.key if table.number is None else table.number
    statement = sa.select(*table.columns(vector=True)).order_by(order)
    wanted = condition(table, filters)
    with comparing(filters, FilterError):
        rows = connection.execute(statement if wanted is None else statement.where(wanted)).mappings().all()
    return [document(table, row) for row in rows]


def search(
    connection: sa.Connection,
    table: Documents,
    vector: Sequence[float],
    *,
    filters: Filters = None,
    return_embedding: bool = False,
    **arguments: Any,
) -> list[Document]:
    wanted = condition(table, filters)
    with comparing(filters, FilterError):
        rows = table.nearest(connection, vector, wanted, vector=return_embedding, **arguments)
    # Larger is nearer for Haystack. With cosine and without labels the score is the similarity.
    best = 1 if table.distance == "cosine" else 0
    return [document(table, row, best - row[SCORE]) for row in rows]


def explain(
    connection: sa.Connection,
    table: Documents,
    vector: Sequence[float],
    *,
    filters: Filters = None,
    **arguments: Any,
) -> dict[str, str]:
    with comparing(filters, FilterError):
        return table.explain(connection, vector, condition(table, filters), **arguments)
