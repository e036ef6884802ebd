"""The table that a store makes: a document of Haystack's may lack text and embedding, and may be a blob."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from foh_pg.sqlalchemy import FOHIndex
from foh_pg.stores.documents import Blob, Documents, OwnTable, VectorIn
from foh_pg.stores.included import included_columns


class HaystackTable(OwnTable):
    METADATA = "meta"

    def _documents(self, place: Any, dimensions: int | None, include: Mapping[str, str]) -> Documents:
        meta: sa.Column[Any] = sa.Column(self.METADATA, JSONB, nullable=False, server_default="{}")
        included = included_columns(meta, include)
        index = FOHIndex(
            self.index, "embedding", labels="labels", include=list(included.values()), **self.options
        )
        table = sa.Table(
            self.name,
            sa.MetaData(),
            sa.Column("id", sa.Text, primary_key=True),
            sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
            sa.Column("content", sa.Text),
            sa.Column("blob_data", sa.LargeBinary),
            sa.Column("blob_meta", JSONB),
            sa.Column("blob_mime_type", sa.Text),
            meta,
            sa.Column("labels", ARRAY(sa.Text), nullable=False, server_default="{}"),
            sa.Column("embedding", VectorIn(dimensions, place.vector)),
            *included.values(),
            index,
            schema=place.schema,
        )
        c = table.c
        blob = Blob(c.blob_data, c.blob_meta, c.blob_mime_type)
        return Documents(
            index, c.id, c.content, c.embedding, meta, c.labels, place.vector, blob, c.number, included
        )
