"""What the methods of a store do on a connection: the same with an event loop and without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Unpack

import sqlalchemy as sa
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy

from foh_pg.errors import InputError
from foh_pg.haystack import statements
from foh_pg.haystack.documents import as_row
from foh_pg.haystack.statements import Filters
from foh_pg.index.calls import HowToSearch
from foh_pg.stores.documents import Documents
from foh_pg.stores.fields import labels_of
from foh_pg.stores.store_table import StoreTable

# From the score of a search, where smaller is nearer, to Haystack's, where larger is. With cosine and without
# labels it is the similarity.
SCORES: dict[str, Callable[[float], float]] = {
    "cosine": lambda score: 1 - score,
    "l2": lambda score: -score,
    "ip": lambda score: -score,
}


class Requests:
    """Each method checks what it is given, and returns what is to be run."""

    embedding_dimension: int
    table: str
    labels: list[str]
    distance: str
    existing: dict[str, Any] | None
    _table: StoreTable

    def _writer(self, documents: list[Document], policy: DuplicatePolicy) -> Callable[[sa.Connection], int]:
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise InputError("write_documents takes a list of Documents")
        dimensions = None if self.existing else self.embedding_dimension

        def run(connection: sa.Connection) -> int:
            if not documents:
                return 0
            table = self._table.find_or_make(connection, self.embedding_dimension)
            rows = [as_row(table, each, self.labels, dimensions) for each in documents]
            return statements.write(connection, table, rows, policy)

        return run

    def _emptier(self, recreate_index: bool) -> Callable[[sa.Connection, Documents], int]:
        if not recreate_index:
            return lambda c, t: statements.delete_where(c, t, None)
        if self.existing:
            raise InputError(f"{self.table!r} was there before this store, which does not drop it")

        def drop(connection: sa.Connection, table: Documents) -> int:
            self._table.forget()
            table.table.metadata.drop_all(connection)
            return 0

        return drop

    def _updater(
        self, filters: Filters, meta: Mapping[str, Any]
    ) -> Callable[[sa.Connection, Documents], int]:
        def labels(merged: Mapping[str, Any]) -> list[str]:
            return labels_of(merged, self.labels)

        return lambda c, t: statements.update_where(c, t, filters, meta, labels)

    def _searcher(
        self,
        vector: Sequence[float],
        top_k: int,
        *,
        filters: Filters = None,
        return_embedding: bool = False,
        **how: Unpack[HowToSearch],
    ) -> Callable[[sa.Connection, Documents], list[Document]]:
        if top_k < 0:
            raise InputError(f"top_k is {top_k}, it must be 0 or more")
        if not self.existing and len(vector) != self.embedding_dimension:
            raise InputError(
                f"the query has {len(vector)} dimensions, the store has {self.embedding_dimension} "
                "(embedding_dimension)"
            )

        def search(connection: sa.Connection, table: Documents) -> list[Document]:
            if top_k == 0:
                return []
            return statements.search(
                connection,
                table,
                vector,
                filters=filters,
                embedding=return_embedding,
                score=SCORES[self.distance],
                k=top_k,
                **how,
            )

        return search

    def _explainer(
        self, vector: Sequence[float], top_k: int, *, filters: Filters = None, **how: Unpack[HowToSearch]
    ) -> Callable[[sa.Connection, Documents], dict[str, str]]:
        return lambda c, t: statements.explain(c, t, vector, filters=filters, k=top_k, **how)
