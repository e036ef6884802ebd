"""FohDocumentStore: Haystack's interface over a table with a FOH index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret

from foh_pg.errors import InputError
from foh_pg.haystack import metadata, statements
from foh_pg.haystack.connection import Connectable, engines, serialized
from foh_pg.haystack.own_table import HaystackTable
from foh_pg.haystack.requests import SCORES, Requests
from foh_pg.haystack.statements import Filters
from foh_pg.stores.documents import Documents, ExistingTable, Source
from foh_pg.stores.engines import Engines
from foh_pg.stores.store_table import StoreTable

T = TypeVar("T")


class FohDocumentStore(Requests):
    """Documents in PostgreSQL, searched with a FOH index.

    >>> store = FohDocumentStore("dbname=shop", embedding_dimension=768, labels="topic")
    >>> store.write_documents([Document(content="Soap", embedding=vector, meta={"topic": "bath"})])
    >>> FohEmbeddingRetriever(document_store=store, top_k=4).run(query_embedding=vector)

    The table (`id`, `content`, `blob_data`, `meta`, `labels`, `embedding`, ...) and its index are made when
    the first document is written. Schema `foh` must be installed: ``foh-pg migrate``.

    Parameters
    ----------
    connection
        A Secret with a libpq connection string or a URI, as by default the environment variable PG_CONN_STR;
        the string itself; or a SQLAlchemy URL, Engine or AsyncEngine (for async methods alone).
    embedding_dimension
        How many numbers an embedding has.
    table, schema
        The store's table.
    labels
        The keys of a document's meta whose values are its labels: what codes learn to keep together.
    index
        The name of the index, that of the table unless given.
    include
        Entries of a document's meta that the index keeps in its lists, where filters on them are answered:
        each with the kind of its values, "text", "number" or "boolean".
    bits, distance, options
        What the index is made with; see `foh.create_index`.
    existing
        What `from_existing` says of a table that is there.
    """

    def __init__(
        self,
        connection: Connectable = Secret.from_env_var("PG_CONN_STR"),  # noqa: B008
        *,
        embedding_dimension: int = 768,
        table: str = "haystack_documents",
        schema: str | None = None,
        labels: str | Sequence[str] = (),
        index: str | None = None,
        bits: int = 64,
        distance: str = "cosine",
        options: Mapping[str, Any] | None = None,
        include: Mapping[str, str] | None = None,
        existing: Mapping[str, Any] | None = None,
    ) -> None:
        if distance not in SCORES:
            raise InputError(f"distance is {distance!r}, it must be cosine, l2 or ip")
        self.connection = connection
        self.embedding_dimension = embedding_dimension
        self.table = table
        self.schema = schema
        self.labels = [labels] if isinstance(labels, str) else list(labels)
        self.index = index or table
        self.bits = bits
        self.distance = distance
        self.options = dict(options or {})
        self.include = include or {}
        self.existing = None if existing is None else dict(existing)
        self._table = StoreTable(self._find_source())
        self._made: Engines | None = None

    @classmethod
    def from_existing(
        cls,
        connection: Connectable = Secret.from_env_var("PG_CONN_STR"),  # noqa: B008
        *,
        table: str,
        content: str,
        embedding: str = "embedding",
        meta: str | Sequence[str] = (),
        index: str | None = None,
        schema: str | None = None,
        distance: str = "cosine",
    ) -> FohDocumentStore:
        """A store on a table that is there, with an index of name `index` (that of the table unless given).

        `content` is the column with a document's text; `meta` one JSONB column, or a list of columns. The
        table's key, as text, is a document's id. `distance` is the index's.
        """
        columns = {"content": content, "embedding": embedding, "meta": meta}
        return cls(connection, table=table, index=index, schema=schema, distance=distance, existing=columns)

    def _find_source(self) -> Source:
        if self.existing is None:
            options = {"bits": self.bits, "distance": self.distance, **self.options}
            return HaystackTable(self.table, self.index, self.schema, options, self.include)
        content, embedding, meta = (self.existing[name] for name in ("content", "embedding", "meta"))
        columns = meta if isinstance(meta, str) else tuple(meta)
        return ExistingTable(self.table, self.index, content, embedding, columns, self.schema)

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(
            self,
            connection=serialized(self.connection),
            embedding_dimension=self.embedding_dimension,
            table=self.table,
            schema=self.schema,
            labels=self.labels,
            index=self.index,
            bits=self.bits,
            distance=self.distance,
            options=self.options,
            include=self.include,
            existing=self.existing,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FohDocumentStore:
        given = data["init_parameters"]
        if isinstance(given.get("connection"), dict):
            connection = Secret.from_dict(given["connection"])
            data = {**data, "init_parameters": {**given, "connection": connection}}
        return default_from_dict(cls, data)  # type: ignore[no-any-return,unused-ignore]

    def close(self) -> None:
        """Close the connections that the store opened; with those of async methods, use `close_async`."""
        if self._made is not None:
            self._made.close()

    async def close_async(self) -> None:
        if self._made is not None:
            await self._made.aclose()

    # What every store has

    def count_documents(self) -> int:
        return self._run(statements.count, 0)

    async def count_documents_async(self) -> int:
        return await self._arun(statements.count, 0)

    def filter_documents(self, filters: Filters = None) -> list[Document]:
        """The documents that match, in the order in which they were written."""
        return self._run(lambda c, t: statements.select(c, t, filters), [])

    async def filter_documents_async(self, filters: Filters = None) -> list[Document]:
        return await self._arun(lambda c, t: statements.select(c, t, filters), [])

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents, all of them or none. Without a policy a document that is there is an error."""
        return self._engines.run(self._writer(documents, policy))

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        return await self._engines.arun(self._writer(documents, policy))

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents by id; those that are not there are no error."""
        self._run(lambda c, t: statements.delete(c, t, document_ids), None)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        await self._arun(lambda c, t: statements.delete(c, t, document_ids), None)

    # What stores may have

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Delete everything; `recreate_index` drops table and index, and what the index learned, too.

        Both are made again with the next document, as this store says, with other `bits` perhaps.
        """
        self._run(self._emptier(recreate_index), 0)

    async def delete_all_documents_async(self, recreate_index: bool = False) -> None:
        await self._arun(self._emptier(recreate_index), 0)

    def delete_by_filter(self, filters: Filters) -> int:
        """How many documents were deleted."""
        return self._run(lambda c, t: statements.delete_where(c, t, filters), 0)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        return await self._arun(lambda c, t: statements.delete_where(c, t, filters), 0)

    def update_by_filter(self, filters: Filters, meta: Mapping[str, Any]) -> int:
        """Merge `meta` into the meta of all documents that match; how many there were."""
        return self._run(self._updater(filters, meta), 0)

    async def update_by_filter_async(self, filters: Filters, meta: Mapping[str, Any]) -> int:
        return await self._arun(self._updater(filters, meta), 0)

    def count_documents_by_filter(self, filters: Filters) -> int:
        return self._run(lambda c, t: statements.count(c, t, filters), 0)

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        return await self._arun(lambda c, t: statements.count(c, t, filters), 0)

    def count_unique_metadata_by_filter(
        self, filters: Filters, metadata_fields: Sequence[str]
    ) -> dict[str, int]:
        """For each field how many values it has among the documents that match."""
        none = {metadata.plain(name): 0 for name in metadata_fields}
        return self._run(lambda c, t: metadata.count_unique(c, t, filters, metadata_fields), none)

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: Sequence[str]
    ) -> dict[str, int]:
        none = {metadata.plain(name): 0 for name in metadata_fields}
        return await self._arun(lambda c, t: metadata.count_unique(c, t, filters, metadata_fields), none)

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The fields of all meta, each with its type."""
        return self._run(metadata.fields_info, {})

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        return await self._arun(metadata.fields_info, {})

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        none = {"min": None, "max": None}
        return self._run(lambda c, t: metadata.min_max(c, t, metadata_field), none)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        none = {"min": None, "max": None}
        return await self._arun(lambda c, t: metadata.min_max(c, t, metadata_field), none)

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters = None,
    ) -> tuple[list[Any], int]:
        """A page of the values that contain the term, and how many there are."""
        asked = (metadata_field, search_term, from_, size, filters)
        return self._run(lambda c, t: metadata.unique_values(c, t, *asked), ([], 0))

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters = None,
    ) -> tuple[list[Any], int]:
        asked = (metadata_field, search_term, from_, size, filters)
        return await self._arun(lambda c, t: metadata.unique_values(c, t, *asked), ([], 0))

    # Searching

    def embedding_retrieval(
        self, query_embedding: Sequence[float], *, top_k: int = 10, **arguments: Any
    ) -> list[Document]:
        """The documents nearest to an embedding, nearest first.

        `filters` is part of the search: `top_k` documents come back whenever so many match. `labels`, from 0
        to 1, says how much the labels count; `probes`, `shortlist`, `recall` and `max_distance` are those of
        `foh_search`;
        `return_embedding` fills the embeddings of the documents. The score is larger for a nearer document;
        with cosine and labels=0 it is the similarity.
        """
        return self._run(self._searcher(query_embedding, top_k, **arguments), [])

    async def embedding_retrieval_async(
        self, query_embedding: Sequence[float], *, top_k: int = 10, **arguments: Any
    ) -> list[Document]:
        return await self._arun(self._searcher(query_embedding, top_k, **arguments), [])

    def explain(
        self, query_embedding: Sequence[float], *, top_k: int = 10, **arguments: Any
    ) -> dict[str, str]:
        """How a search is answered: what of its filters the lists answer (match), what rows (filter)."""
        return self._run(self._explainer(query_embedding, top_k, **arguments), {})

    async def explain_async(
        self, query_embedding: Sequence[float], *, top_k: int = 10, **arguments: Any
    ) -> dict[str, str]:
        return await self._arun(self._explainer(query_embedding, top_k, **arguments), {})

    # What runs on a connection

    @property
    def _engines(self) -> Engines:
        # Made when it is first needed: a pipeline is put together where there may be no database.
        if self._made is None:
            self._made = engines(self.connection)
        return self._made

    def _run(self, function: Callable[[sa.Connection, Documents], T], otherwise: T) -> T:
        return self._engines.run(self._table.using(function, otherwise))

    async def _arun(self, function: Callable[[sa.Connection, Documents], T], otherwise: T) -> T:
        return await self._engines.arun(self._table.using(function, otherwise))
