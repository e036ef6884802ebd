"""FohDocumentStore: Haystack's interface over a table with a FOH index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from sqlalchemy.dialects.postgresql import insert
from typing_extensions import Unpack

from foh_pg.errors import InputError
from foh_pg.haystack.documents import HaystackTable, as_row, document
from foh_pg.haystack.filters import FilterError, condition
from foh_pg.index.calls import HowToSearch
from foh_pg.stores import store_table
from foh_pg.stores.documents import SCORE, Documents, ExistingTable, Source, check_distance
from foh_pg.stores.store_table import StoreTable

Connectable = Secret | store_table.Connectable
Filters = Mapping[str, Any] | None


class FohDocumentStore:
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
        the string itself; or a SQLAlchemy URL or Engine.
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
    existing
        What `from_existing` says of a table that is there.
    options
        What the index is made with, such as `bits` and `distance`; see `foh.create_index`.
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
        include: Mapping[str, str] | None = None,
        existing: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        check_distance(options)
        self.connection = connection
        self.embedding_dimension = embedding_dimension
        self.table = table
        self.schema = schema
        self.labels = [labels] if isinstance(labels, str) else list(labels)
        self.index = index or table
        self.include = include or {}
        self.existing = None if existing is None else dict(existing)
        self.options = options
        self._table = StoreTable(self._address, self._find_source(), condition, FilterError)

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
    ) -> FohDocumentStore:
        """A store on a table that is there, with an index of name `index` (that of the table unless given).

        `content` is the column with a document's text; `meta` one JSONB column, or a list of columns. The
        table's key, as text, is a document's id.
        """
        columns = {"content": content, "embedding": embedding, "meta": meta}
        return cls(connection, table=table, index=index, schema=schema, existing=columns)

    def _find_source(self) -> Source:
        if self.existing is None:
            return HaystackTable(self.table, self.index, self.schema, self.options, self.include)
        content, embedding, meta = (self.existing[name] for name in ("content", "embedding", "meta"))
        columns = meta if isinstance(meta, str) else tuple(meta)
        return ExistingTable(self.table, self.index, content, embedding, columns, self.schema)

    def to_dict(self) -> dict[str, Any]:
        """For a file that others may read: a Secret says where the connection string is."""
        if not isinstance(self.connection, Secret):
            raise InputError(
                "a store is written to a file only if its connection is a Secret, such as "
                f"Secret.from_env_var('PG_CONN_STR'), and not a {type(self.connection).__name__}"
            )
        return default_to_dict(
            self,
            connection=self.connection.to_dict(),
            embedding_dimension=self.embedding_dimension,
            table=self.table,
            schema=self.schema,
            labels=self.labels,
            index=self.index,
            include=self.include,
            existing=self.existing,
            **self.options,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FohDocumentStore:
        given = data["init_parameters"]
        if isinstance(given.get("connection"), dict):
            connection = Secret.from_dict(given["connection"])
            data = {**data, "init_parameters": {**given, "connection": connection}}
        return default_from_dict(cls, data)  # type: ignore[no-any-return,unused-ignore]

    def _address(self) -> store_table.Connectable:
        """What to connect to; a Secret is asked for its value when that is needed."""
        given = self.connection
        address = given.resolve_value() if isinstance(given, Secret) else given
        if address is None:
            raise InputError("the store has no connection string: its Secret has no value")
        return address

    def close(self) -> None:
        """Close the connections that the store opened."""
        self._table.close()

    def count_documents(self) -> int:
        def count(connection: sa.Connection, table: Documents) -> int:
            return connection.scalar(sa.select(sa.func.count()).select_from(table.table)) or 0

        return self._table.run(count, 0)

    def filter_documents(self, filters: Filters = None) -> list[Document]:
        """The documents that match, in the order in which they were written, or of their keys."""

        def select(connection: sa.Connection, table: Documents, wanted: Any) -> list[Document]:
            statement = sa.select(*table.columns(vector=True))
            statement = statement if wanted is None else statement.where(wanted)
            rows = connection.execute(statement.order_by(table.key if table.number is None else table.number))
            return [document(table, row) for row in rows.mappings()]

        return self._table.filtered(filters, select, [])

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents, all of them or none. Without a policy a document that is there is an error."""
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise InputError("write_documents takes a list of Documents")
        if not documents:
            return 0
        dimensions = None if self.existing else self.embedding_dimension

        def write(connection: sa.Connection, table: Documents) -> int:
            rows = [as_row(table, each, self.labels, dimensions) for each in documents]
            return _write(connection, table, rows, policy)

        return self._table.write(write, self.embedding_dimension)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents by id; those that are not there are no error."""
        self._table.run(lambda c, t: t.delete(c, document_ids), True)

    def embedding_retrieval(
        self,
        query_embedding: Sequence[float],
        *,
        filters: Filters = None,
        top_k: int = 10,
        return_embedding: bool = False,
        **how: Unpack[HowToSearch],
    ) -> list[Document]:
        """The documents nearest to an embedding, nearest first.

        `filters` is part of the search: `top_k` documents come back whenever so many match. `labels`, from 0
        to 1, says how much the labels count; `probes`, `shortlist`, `recall` and `max_distance` are those of
        `foh_search`; `return_embedding` fills the embeddings of the documents. The score is larger for a
        nearer document; with cosine and labels=0 it is the similarity.
        """
        if top_k < 0:
            raise InputError(f"top_k is {top_k}, it must be 0 or more")
        if not self.existing and len(query_embedding) != self.embedding_dimension:
            raise InputError(
                f"the query has {len(query_embedding)} dimensions, the store has {self.embedding_dimension} "
                "(embedding_dimension)"
            )

        def search(connection: sa.Connection, table: Documents, wanted: Any) -> list[Document]:
            rows = table.nearest(connection, query_embedding, wanted, vector=return_embedding, k=top_k, **how)
            # Larger is nearer for Haystack. With cosine and without labels the score is the similarity.
            best = 1 if table.distance == "cosine" else 0
            return [document(table, row, best - row[SCORE]) for row in rows]

        return self._table.filtered(filters, search, []) if top_k else []

    def explain(
        self,
        query_embedding: Sequence[float],
        *,
        filters: Filters = None,
        top_k: int = 10,
        **how: Unpack[HowToSearch],
    ) -> dict[str, str]:
        """How a search is answered: what of its filters the lists answer (match), what rows (filter)."""
        return self._table.filtered(
            filters, lambda c, t, wanted: t.explain(c, query_embedding, wanted, k=top_k, **how), {}
        )


def _write(
    connection: sa.Connection, table: Documents, rows: Sequence[dict[str, Any]], policy: DuplicatePolicy
) -> int:
    """The number of documents written. The caller has opened a transaction, which an error undoes."""
    key = table.key
    if policy == DuplicatePolicy.OVERWRITE:
        # One statement cannot write a row twice: of documents with the same id the last one stays.
        connection.execute(table.upsert(rows[0]), list({row[key.name]: row for row in rows}.values()))
        return len(rows)
    statement = insert(table.table).on_conflict_do_nothing(index_elements=[key])
    written = list(connection.execute(statement.returning(key), rows).scalars())
    if len(written) < len(rows) and policy != DuplicatePolicy.SKIP:
        there = Counter(row[key.name] for row in rows) - Counter(written)
        raise DuplicateDocumentError(
            f"{', '.join(map(repr, there))} would be in {table.table.name!r} twice: pass "
            "policy=DuplicatePolicy.OVERWRITE or SKIP"
        )
    return len(written)
