"""The table that a store makes: a document of Haystack's may lack text and embedding, and may be a blob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.stores.documents import Blob, Documents, OwnTable


class HaystackTable(OwnTable):
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
        return replace(made, blob=Blob(c.blob_data, c.blob_meta, c.blob_mime_type), number=c.number)
