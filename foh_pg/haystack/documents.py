"""Documents of Haystack's as rows, and back; and the table that a store makes for them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from haystack import Document
from haystack.dataclasses import ByteStream
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.errors import InputError
from foh_pg.stores.documents import VECTOR, Documents, OwnTable

logger = logging.getLogger(__name__)


class HaystackTable(OwnTable):
    """A document of Haystack's may lack text and embedding, and may be a blob."""

    METADATA = "meta"
    PARTIAL = True

    def _more_columns(self) -> list[sa.Column[Any]]:
        return [
            sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
            sa.Column("blob_data", sa.LargeBinary),
            sa.Column("blob_meta", JSONB),
            sa.Column("blob_mime_type", sa.Text),
        ]

    def _documents(self, present: Any, dimensions: int | None, include: Mapping[str, str]) -> Documents:
        made = super()._documents(present, dimensions, include)
        c = made.table.c
        return replace(made, blob=(c.blob_data, c.blob_meta, c.blob_mime_type), number=c.number)


def document(table: Documents, row: Mapping[Any, Any], score: float | None = None) -> Document:
    blob, vector = None, row.get(VECTOR)
    data, meta, mime_type = [row[column] for column in table.blob] or (None, None, None)
    if data is not None:
        blob = ByteStream(bytes(data), meta=meta or {}, mime_type=mime_type)
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
    blob = given.blob
    if blob is not None and not table.blob:
        raise InputError(f"document {given.id!r} is a blob, and {table.table.name!r} has no column for it")
    kept = (None, None, None) if blob is None else (blob.data, blob.meta, blob.mime_type)
    return {
        **table.row(given.id, given.content, given.embedding, given.meta, labels),
        **{column.name: value for column, value in zip(table.blob, kept, strict=False)},
    }
