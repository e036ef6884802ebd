"""Documents of Haystack's as rows, and back."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from haystack import Document
from haystack.dataclasses import ByteStream

from foh_pg.errors import InputError
from foh_pg.stores.documents import VECTOR, Documents
from foh_pg.stores.fields import labels_of

logger = logging.getLogger(__name__)


def document(table: Documents, row: Mapping[Any, Any], score: float | None = None) -> Document:
    blob = None
    if table.blob is not None and row[table.blob.data] is not None:
        meta = row[table.blob.meta] or {}
        blob = ByteStream(bytes(row[table.blob.data]), meta=meta, mime_type=row[table.blob.mime_type])
    vector = row.get(VECTOR)
    return Document(
        id=str(row[table.key]),
        content=row[table.content],
        blob=blob,
        meta=table.metadata_of(row),
        score=score,
        embedding=None if vector is None else [float(number) for number in vector],
    )


def as_row(
    table: Documents, given: Document, labels: Sequence[str], dimensions: int | None
) -> dict[str, Any]:
    """A row for the table; an error where the document does not fit it."""
    if given.embedding is not None and dimensions is not None and len(given.embedding) != dimensions:
        raise InputError(
            f"document {given.id!r} has an embedding of {len(given.embedding)} dimensions, the store has "
            f"{dimensions} (embedding_dimension)"
        )
    if given.sparse_embedding is not None:
        logger.warning("document %r: its sparse embedding is not stored", given.id)
    row = {
        table.key.name: table.key_of(given.id),
        table.content.name: given.content,
        table.embedding.name: given.embedding,
        **table.metadata_values(given.meta),
    }
    if table.labels is not None:
        row[table.labels.name] = labels_of(given.meta, labels)
    if table.blob is not None:
        blob = given.blob
        row[table.blob.data.name] = None if blob is None else blob.data
        row[table.blob.meta.name] = None if blob is None else blob.meta
        row[table.blob.mime_type.name] = None if blob is None else blob.mime_type
    elif given.blob is not None:
        raise InputError(f"document {given.id!r} is a blob, and {table.table.name!r} has no column for it")
    return row
