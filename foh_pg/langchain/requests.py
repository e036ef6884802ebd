"""What the methods of a store do on a connection: the same with an event loop and without one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from foh_pg.errors import InputError
from foh_pg.index.calls import HowToSearch
from foh_pg.langchain import statements
from foh_pg.langchain.filters import Filter, condition
from foh_pg.langchain.statements import Found
from foh_pg.sqlalchemy import foh_explain
from foh_pg.stores.documents import Documents
from foh_pg.stores.fields import labels_of
from foh_pg.stores.filter_parts import comparing
from foh_pg.stores.store_table import StoreTable


class Requests:
    """Each method checks what it is given, and returns what is to be run."""

    _labels: list[str]
    _distance: str
    _table: StoreTable

    def _adder(
        self,
        texts: Sequence[str],
        vectors: Sequence[Sequence[float]],
        metadatas: Sequence[Mapping[str, Any]] | None,
        ids: Sequence[str | None] | None,
    ) -> Callable[[sa.Connection], list[str]]:
        metadatas = [{} for _ in texts] if metadatas is None else metadatas
        given = [None for _ in texts] if ids is None else ids
        for name, values in (("metadatas", metadatas), ("ids", given)):
            if len(values) != len(texts):
                raise InputError(f"{len(texts)} texts and {len(values)} {name}: give one for each")

        def run(connection: sa.Connection) -> list[str]:
            if not texts:
                return []
            documents = self._table.find_or_make(connection, len(vectors[0]))
            own = documents.labels is not None
            rows = []
            for text, vector, metadata, identifier in zip(texts, vectors, metadatas, given, strict=True):
                row = {documents.content.name: text, documents.embedding.name: vector}
                row.update(documents.metadata_values(metadata))
                if documents.labels is not None:
                    row[documents.labels.name] = labels_of(metadata, self._labels)
                if identifier is not None or own:
                    row[documents.key.name] = documents.key_of(identifier or str(uuid.uuid4()))
                rows.append(row)
            return statements.add(connection, documents, rows)

        return run

    def _searcher(
        self,
        vector: Sequence[float],
        k: int,
        *,
        filter: Filter = None,
        with_vectors: bool = False,
        **given: Any,
    ) -> Callable[[sa.Connection], list[Found]]:
        how = _understood(given)

        def search(connection: sa.Connection, documents: Documents) -> list[Found]:
            return statements.search(
                connection,
                documents,
                vector,
                distance=self._distance,
                filter=filter,
                with_vectors=with_vectors,
                k=k,
                **how,
            )

        # No table yet is an empty store.
        return self._table.using(search, [])

    def _explainer(
        self, vector: Sequence[float], k: int, *, filter: Filter = None, **given: Any
    ) -> Callable[[sa.Connection], dict[str, str]]:
        how = _understood(given)

        def explain(connection: sa.Connection, documents: Documents) -> dict[str, str]:
            wanted = condition(documents, filter)
            with comparing(filter):
                return foh_explain(
                    connection, documents.table, vector, filter=wanted, index=documents.index, k=k, **how
                )

        return self._table.using(explain, {})


def _understood(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is for a search: LangChain hands on what other stores may understand too."""
    return {name: value for name, value in given.items() if name in HowToSearch.__annotations__}
