"""The table that a store makes: a document of Haystack's may lack text and embedding, and may be a blob."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from foh_pg.sqlalchemy import FOHIndex
from foh_pg.stores.documents import Blob, Documents, OwnTable, VectorIn


class HaystackTable(OwnTable):
    def _documents(self, place: Any, dimensions: int | None) -> Documents:
        index = FOHIndex(self.index, "embedding", labels="labels", **self.options)
        table = sa.Table(
            self.name,
            sa.MetaData(),
            sa.Column("id", sa.Text, primary_key=True),
            sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
            sa.Column("content", sa.Text),
            sa.Column("blob_data", sa.LargeBinary),
            sa.Column("blob_meta", JSONB),
            sa.Column("blob_mime_type", sa.Text),
            sa.Column("meta", JSONB, nullable=False, server_default="{}"),
            sa.Column("labels", ARRAY(sa.Text), nullable=False, server_default="{}"),
            sa.Column("embedding", VectorIn(dimensions, place.vector)),
            index,
            schema=place.schema,
        )
        c = table.c
        blob = Blob(c.blob_data, c.blob_meta, c.blob_mime_type)
        return Documents(index, c.id, c.content, c.embedding, c.meta, c.labels, place.vector, blob, c.number)
