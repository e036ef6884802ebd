"""A Haystack document store on PostgreSQL with a FOH index. Needs the extra ``foh_pg[haystack]``."""

from __future__ import annotations

from foh_pg.haystack.retriever import FohEmbeddingRetriever
from foh_pg.haystack.store import FohDocumentStore

__all__ = ["FohDocumentStore", "FohEmbeddingRetriever"]
