"""FOHVectorStore: LangChain's interface over a table with a FOH index.

Async methods are those of LangChain's own base class, which run these in threads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from foh_pg.errors import InputError
from foh_pg.index.calls import HowToSearch
from foh_pg.langchain.filters import Filter, condition
from foh_pg.stores.documents import DISTANCE, VECTOR, Documents, ExistingTable, OwnTable, check_distance
from foh_pg.stores.store_table import Connectable, StoreTable


class Found(NamedTuple):
    document: Document
    distance: float
    vector: list[float]


class FOHVectorStore(VectorStore):
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
        A libpq connection string, a SQLAlchemy URL or an Engine.
    table, schema
        The store's table.
    labels
        The keys of a document's metadata whose values are its labels: what codes learn to keep together.
    index
        The name of the index, that of the table unless given.
    include
        Entries of a document's metadata that the index keeps in its lists, where filters on them are
        answered: each with the kind of its values, "text", "number" or "boolean".
    options
        What the index is made with, such as `bits` and `distance`; see `foh.create_index`.
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
        **options: Any,
    ) -> None:
        check_distance(options)
        self._embedding = embedding
        self._labels = [labels] if isinstance(labels, str) else list(labels)
        source = OwnTable(table, index or table, schema, options, include or {})
        self._table = StoreTable(lambda: connection, source, condition)

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
    ) -> FOHVectorStore:
        """A store on a table that is there, with an index of name `index` (that of the table unless given).

        `content` is the column with a document's text; `metadata` one JSONB column, or a list of columns.
        The table's key, as text, is a document's id.
        """
        store = cls(embedding, connection)
        columns = metadata if isinstance(metadata, str) else tuple(metadata)
        source = ExistingTable(table, index or table, content, embedding_column, columns, schema)
        store._table = StoreTable(lambda: connection, source, condition)
        return store

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def close(self) -> None:
        """Close the connections that the store opened."""
        self._table.close()

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
        given = [{} for _ in texts] if metadatas is None else metadatas
        names = [None for _ in texts] if ids is None else ids
        for what, values in (("metadatas", given), ("ids", names)):
            if len(values) != len(texts):
                raise InputError(f"{len(texts)} texts and {len(values)} {what}: give one for each")
        if not texts:
            return []
        vectors = self._embedding.embed_documents(texts)

        def add(connection: sa.Connection, documents: Documents) -> list[str]:
            # A table of the store's own makes no keys; one of the application's may.
            is_ours = documents.labels is not None
            rows = [
                documents.row(
                    name or (str(uuid.uuid4()) if is_ours else None), text, vector, metadata, self._labels
                )
                for name, text, vector, metadata in zip(names, texts, vectors, given, strict=True)
            ]
            return _upsert(connection, documents, rows)

        return self._table.write(add, len(vectors[0]))

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents by id; those that are not there are no error. Without ids, delete nothing."""
        return self._table.run(lambda c, d: d.delete(c, ids or []), True)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that are there, in the order of their ids."""

        def get(connection: sa.Connection, documents: Documents) -> list[Document]:
            keys = [documents.key_of(each) for each in ids]
            rows = connection.execute(sa.select(*documents.columns()).where(documents.key.in_(keys)))
            found = {row[documents.key]: _document(documents, row) for row in rows.mappings()}
            return [found[key] for key in keys if key in found]

        return self._table.run(get, [])

    # Searching. kwargs are those of foh_search: filter, probes, shortlist, labels, recall and max_distance.

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.similarity_search_by_vector(self._embedding.embed_query(query), k, **kwargs)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        return [found.document for found in self._search(embedding, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The documents that a search finds, the nearest first, each with its distance from the query."""
        found = self._search(self._embedding.embed_query(query), k, **kwargs)
        # Labels decided which documents these are; the distance decides their order.
        return sorted(((each.document, each.distance) for each in found), key=lambda pair: pair[1])

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        found = self._search(embedding, max(k, fetch_k), vector=True, **kwargs)
        vectors = [each.vector for each in found]
        if not vectors:
            return []
        chosen = maximal_marginal_relevance(np.asarray(embedding), vectors, lambda_mult=lambda_mult, k=k)
        return [found[position].document for position in chosen]

    def explain(self, query: str, k: int = 4, **kwargs: Any) -> dict[str, str]:
        """How a search is answered: what of its filter the lists answer (match), what rows (filter)."""
        vector, how = self._embedding.embed_query(query), _understood(kwargs)
        return self._table.filtered(
            kwargs.get("filter"), lambda c, d, wanted: d.explain(c, vector, wanted, k=k, **how), {}
        )

    def _search(
        self, query: Sequence[float], k: int, *, filter: Filter = None, vector: bool = False, **kwargs: Any
    ) -> list[Found]:
        def search(connection: sa.Connection, documents: Documents, wanted: Any) -> list[Found]:
            rows = documents.nearest(connection, query, wanted, vector=vector, k=k, **_understood(kwargs))
            return [
                Found(_document(documents, row), row[DISTANCE], list(row.get(VECTOR, ()))) for row in rows
            ]

        return self._table.filtered(filter, search, [])

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return {
            "cosine": self._cosine_relevance_score_fn,
            "l2": self._euclidean_relevance_score_fn,
            "ip": self._max_inner_product_relevance_score_fn,
        }[self._table.run(lambda _, documents: documents.distance, "cosine")]

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
        if connection is None:
            raise InputError("a store needs the argument connection: a connection string or an engine")
        store = cls(embedding, connection, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _upsert(connection: sa.Connection, documents: Documents, rows: list[dict[str, Any]]) -> list[str]:
    """Insert rows, or replace what has their key; the keys, as text."""
    key = documents.key.name
    if all(key in row for row in rows):
        connection.execute(documents.upsert(rows[0]), rows)
        return [str(row[key]) for row in rows]
    statements = (documents.upsert(row).values(row).returning(documents.key) for row in rows)
    return [str(connection.execute(statement).scalar_one()) for statement in statements]


def _document(documents: Documents, row: Mapping[Any, Any]) -> Document:
    return Document(
        id=str(row[documents.key]),
        page_content=row[documents.content] or "",
        metadata=documents.metadata_of(row),
    )


def _understood(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is for a search: LangChain hands on what other stores may understand too."""
    return {name: value for name, value in given.items() if name in HowToSearch.__annotations__}
