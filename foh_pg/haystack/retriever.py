"""A component that asks a FohDocumentStore."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack.document_stores.types.filter_policy import apply_filter_policy

from foh_pg.errors import InputError
from foh_pg.haystack.store import FohDocumentStore


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
    labels
        How much the labels count, from 0 (nearest embeddings and nothing else) over 0.5 (as learned) to 1
        (documents likeliest to share a label); None: the index's option `dial`.
    probes, shortlist
        Lists to read and rows to rank with the exact distance; None: the index's own choice.
    recall, max_distance
        The share of the ten nearest documents to find, and how far a document may be at the most.
    """

    def __init__(
        self,
        *,
        document_store: FohDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        labels: float | None = None,
        probes: int | None = None,
        shortlist: int | None = None,
        recall: float | None = None,
        max_distance: float | None = None,
        return_embedding: bool = False,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        if not isinstance(document_store, FohDocumentStore):
            raise InputError(
                f"document_store must be a FohDocumentStore, not a {type(document_store).__name__}"
            )
        self.document_store = document_store
        self.filters = filters or {}
        self.top_k = top_k
        self.labels = labels
        self.probes = probes
        self.shortlist = shortlist
        self.recall = recall
        self.max_distance = max_distance
        self.return_embedding = return_embedding
        self.filter_policy = (
            filter_policy if isinstance(filter_policy, FilterPolicy) else FilterPolicy.from_str(filter_policy)
        )

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            labels=self.labels,
            probes=self.probes,
            shortlist=self.shortlist,
            recall=self.recall,
            max_distance=self.max_distance,
            return_embedding=self.return_embedding,
            filter_policy=self.filter_policy.value,
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
        arguments = self._arguments(filters, top_k, labels)
        return {"documents": self.document_store.embedding_retrieval(query_embedding, **arguments)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        labels: float | None = None,
    ) -> dict[str, list[Document]]:
        arguments = self._arguments(filters, top_k, labels)
        found = await self.document_store.embedding_retrieval_async(query_embedding, **arguments)
        return {"documents": found}

    def _arguments(
        self, filters: dict[str, Any] | None, top_k: int | None, labels: float | None
    ) -> dict[str, Any]:
        return {
            "filters": apply_filter_policy(self.filter_policy, self.filters, filters),
            "top_k": self.top_k if top_k is None else top_k,
            "labels": self.labels if labels is None else labels,
            "probes": self.probes,
            "shortlist": self.shortlist,
            "recall": self.recall,
            "max_distance": self.max_distance,
            "return_embedding": self.return_embedding,
        }
