"""A component that asks a FohDocumentStore."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack.document_stores.types.filter_policy import apply_filter_policy
from typing_extensions import Unpack

from foh_pg.errors import InputError
from foh_pg.haystack.store import FohDocumentStore
from foh_pg.index.calls import HowToSearch


@component
class FohEmbeddingRetriever:
    """The documents nearest to an embedding, for pipelines.

    Parameters
    ----------
    document_store
        The store.
    filters, filter_policy
        Filters of every search, and whether those of a run replace them or are added.
    top_k
        How many documents to find.
    how
        `labels`, `probes`, `shortlist`, `recall` and `max_distance`, as `foh_search` takes them.
    """

    def __init__(
        self,
        *,
        document_store: FohDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        **how: Unpack[HowToSearch],
    ) -> None:
        if not isinstance(document_store, FohDocumentStore):
            raise InputError(
                f"document_store must be a FohDocumentStore, not a {type(document_store).__name__}"
            )
        self.document_store = document_store
        self.filters = filters or {}
        self.top_k = top_k
        self.return_embedding = return_embedding
        self.filter_policy = (
            filter_policy if isinstance(filter_policy, FilterPolicy) else FilterPolicy.from_str(filter_policy)
        )
        self.how = how

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            return_embedding=self.return_embedding,
            filter_policy=self.filter_policy.value,
            **self.how,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FohEmbeddingRetriever:
        given = dict(data["init_parameters"])
        given["document_store"] = FohDocumentStore.from_dict(given["document_store"])
        return default_from_dict(cls, {**data, "init_parameters": given})

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        labels: float | None = None,
    ) -> dict[str, list[Document]]:
        """Search; what is given here wins over what the component was made with."""
        how = self.how.copy()
        if labels is not None:
            how["labels"] = labels
        found = self.document_store.embedding_retrieval(
            query_embedding,
            top_k=self.top_k if top_k is None else top_k,
            filters=apply_filter_policy(self.filter_policy, self.filters, filters),
            return_embedding=self.return_embedding,
            **how,
        )
        return {"documents": found}
