"""FOHVectorStore: LangChain's interface over a table with a FOH index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from sqlalchemy.ext.asyncio import AsyncEngine

from foh_pg.errors import InputError
from foh_pg.langchain import statements
from foh_pg.langchain.requests import Requests
from foh_pg.langchain.statements import Found
from foh_pg.stores.documents import ExistingTable, OwnTable
from foh_pg.stores.engines import Engines
from foh_pg.stores.store_table import StoreTable

T = TypeVar("T")
Connectable = str | sa.URL | sa.Engine | AsyncEngine


class FOHVectorStore(Requests, VectorStore):
    """Documents in PostgreSQL, searched with a FOH index.

    >>> store = FOHVectorStore(OpenAIEmbeddings(), "dbname=shop", labels="topic")
    >>> store.add_documents([Document("Soap", metadata={"topic": "bath"})])
    >>> store.similarity_search("something for the bath", k=4, filter={"topic": "bath"})
    >>> store.similarity_search("something for the bath", labels=0)  # nearest vectors and nothing else

    The table (`id`, `content`, `metadata`, `labels`, `embedding`) and its index are made when they are first
    needed. Schema `foh` must be installed: ``foh-pg migrate``.

    Parameters
    ----------
    embedding
        The model that embeds documents and queries.
    connection
        A libpq connection string, a SQLAlchemy URL, an Engine, or an AsyncEngine (for async methods alone).
    table, schema
        The store's table.
    labels
        The keys of a document's metadata whose values are its labels: what codes learn to keep together.
    index
        The name of the index, that of the table unless given.
    include
        Entries of a document's metadata that the index keeps in its lists, where filters on them are
        answered: each with the kind of its values, "text", "number" or "boolean".
    bits, distance, options
        What the index is made with; see `foh.create_index`.
    """

    def __init__(
        self,
        embedding: Embeddings,
        connection: Connectable,
        *,
        table: str = "langchain_documents",
        schema: str | None = None,
        labels: str | Sequence[str] = (),
        include: Mapping[str, str] | None = None,
        index: str | None = None,
        bits: int = 64,
        distance: str = "cosine",
        **options: Any,
    ) -> None:
        self._start(embedding, connection, distance)
        self._labels = [labels] if isinstance(labels, str) else list(labels)
        options = {"bits": bits, "distance": distance, **options}
        self._table = StoreTable(OwnTable(table, index or table, schema, options, include or {}))

    @classmethod
    def from_existing(
        cls,
        embedding: Embeddings,
        connection: Connectable,
        *,
        table: str,
        content: str,
        embedding_column: str = "embedding",
        metadata: str | Sequence[str] = (),
        index: str | None = None,
        schema: str | None = None,
        distance: str = "cosine",
    ) -> FOHVectorStore:
        """A store on a table that is there, with an index of name `index` (that of the table unless given).

        `content` is the column with a document's text; `metadata` one JSONB column, or a list of columns.
        The table's key, as text, is a document's id. `distance` is the index's.
        """
        store = cls.__new__(cls)
        store._start(embedding, connection, distance)
        store._labels = []
        columns = metadata if isinstance(metadata, str) else tuple(metadata)
        source = ExistingTable(table, index or table, content, embedding_column, columns, schema)
        store._table = StoreTable(source)
        return store

    def _start(self, embedding: Embeddings, connection: Connectable, distance: str) -> None:
        if distance not in statements.DISTANCES:
            raise InputError(f"distance is {distance!r}, it must be cosine, l2 or ip")
        self._embedding = embedding
        self._engines = Engines(connection)
        self._distance = distance

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def close(self) -> None:
        """Close the connections that the store opened; with those of async methods, use `aclose`."""
        self._engines.close()

    async def aclose(self) -> None:
        await self._engines.aclose()

    # Adding, deleting, getting

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, or replace those that have the same id; returns the ids."""
        texts = list(texts)
        vectors = self._embedding.embed_documents(texts) if texts else []
        return self._engines.run(self._adder(texts, vectors, metadatas, ids))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        texts = list(texts)
        vectors = await self._embedding.aembed_documents(texts) if texts else []
        return await self._engines.arun(self._adder(texts, vectors, metadatas, ids))

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents by id; those that are not there are no error. Without ids, delete nothing."""
        return self._engines.run(self._table.using(lambda c, d: statements.delete(c, d, ids or []), True))

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        return await self._engines.arun(
            self._table.using(lambda c, d: statements.delete(c, d, ids or []), True)
        )

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return self._engines.run(self._table.using(lambda c, d: statements.get(c, d, ids), []))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return await self._engines.arun(self._table.using(lambda c, d: statements.get(c, d, ids), []))

    # Searching. kwargs are those of foh_search: filter, probes, shortlist, labels, recall and max_distance.

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.similarity_search_by_vector(self._embedding.embed_query(query), k, **kwargs)

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return await self.asimilarity_search_by_vector(await self._embedding.aembed_query(query), k, **kwargs)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        return [found.document for found in self._search(embedding, k, **kwargs)]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        return [found.document for found in await self._asearch(embedding, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The documents that a search finds, the nearest first, each with its distance from the query."""
        return self.similarity_search_with_score_by_vector(self._embedding.embed_query(query), k, **kwargs)

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        vector = await self._embedding.aembed_query(query)
        return await self.asimilarity_search_with_score_by_vector(vector, k, **kwargs)

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return _by_distance(self._search(embedding, k, **kwargs))

    async def asimilarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return _by_distance(await self._asearch(embedding, k, **kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        vector = await self._embedding.aembed_query(query)
        return await self.amax_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        found = self._search(embedding, max(k, fetch_k), with_vectors=True, **kwargs)
        return _diverse(embedding, found, k, lambda_mult)

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        found = await self._asearch(embedding, max(k, fetch_k), with_vectors=True, **kwargs)
        return _diverse(embedding, found, k, lambda_mult)

    def explain(self, query: str, k: int = 4, **kwargs: Any) -> dict[str, str]:
        """How a search is answered: what of its filter the lists answer (match), what rows (filter)."""
        return self._engines.run(self._explainer(self._embedding.embed_query(query), k, **kwargs))

    async def aexplain(self, query: str, k: int = 4, **kwargs: Any) -> dict[str, str]:
        vector = await self._embedding.aembed_query(query)
        return await self._engines.arun(self._explainer(vector, k, **kwargs))

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return {
            "cosine": self._cosine_relevance_score_fn,
            "l2": self._euclidean_relevance_score_fn,
            "ip": self._max_inner_product_relevance_score_fn,
        }[self._distance]

    # Making

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        connection: Connectable | None = None,
        **kwargs: Any,
    ) -> FOHVectorStore:
        """A store with these texts; takes the arguments of the class."""
        store = cls(embedding, _required(connection), **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        connection: Connectable | None = None,
        **kwargs: Any,
    ) -> FOHVectorStore:
        store = cls(embedding, _required(connection), **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def _search(self, vector: Sequence[float], k: int, **kwargs: Any) -> list[Found]:
        return self._engines.run(self._searcher(vector, k, **kwargs))

    async def _asearch(self, vector: Sequence[float], k: int, **kwargs: Any) -> list[Found]:
        return await self._engines.arun(self._searcher(vector, k, **kwargs))


def _by_distance(found: list[Found]) -> list[tuple[Document, float]]:
    """In the order of what stands beside the documents; labels decided which they are."""
    return sorted(((each.document, each.distance) for each in found), key=lambda pair: pair[1])


def _diverse(vector: Sequence[float], found: list[Found], k: int, lambda_mult: float) -> list[Document]:
    if not found:
        return []
    chosen = maximal_marginal_relevance(
        np.asarray(vector), [each.vector for each in found], lambda_mult=lambda_mult, k=k
    )
    return [found[position].document for position in chosen]


def _required(connection: Connectable | None) -> Connectable:
    if connection is None:
        raise InputError("a store needs the argument connection: a connection string or an engine")
    return connection
