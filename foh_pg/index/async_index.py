from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.rows import dict_row, tuple_row

from foh_pg.errors import IndexNotFound
from foh_pg.index import calls
from foh_pg.index.calls import Call
from foh_pg.index.results import (
    Description,
    Match,
    Suggested,
    Suggestion,
    as_match,
    batches,
    description,
    one_vector,
    suggestions,
)
from foh_pg.postgres import vectors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from psycopg_pool import AsyncConnectionPool
    from typing_extensions import Unpack

    from foh_pg.index.calls import SearchOptions

    Connection = psycopg.AsyncConnection[Any] | AsyncConnectionPool[Any]


class AsyncIndex:
    """An index, through a psycopg.AsyncConnection or a psycopg_pool.AsyncConnectionPool.

    The methods are those of Index, awaited.

    Examples
    --------
    >>> products = await AsyncIndex.open(pool, "products")                          # doctest: +SKIP
    >>> matches = await products.search(vector, k=5)                                # doctest: +SKIP
    """

    def __init__(self, connection: Connection, name: str, about: Description) -> None:
        self.name = name
        self.about = about
        self._connection = connection

    @classmethod
    async def open(cls, connection: Connection, name: str) -> AsyncIndex:
        """An index that exists; IndexNotFound where none does."""
        try:
            [row] = await _rows(connection, calls.describe(name))
        except (errors.UndefinedFunction, errors.InvalidSchemaName) as error:
            raise IndexNotFound.named(name) from error
        return cls(connection, name, description(row))

    @classmethod
    async def create(
        cls, connection: Connection, name: str, table: str, embedding: str, **arguments: Any
    ) -> AsyncIndex:
        """Create an index on `table`, with the arguments of the SQL function foh.create_index."""
        await _rows(connection, calls.create(name, table, embedding, arguments))
        return await cls.open(connection, name)

    def __repr__(self) -> str:
        return f"<AsyncIndex {self.name!r} on {self.about.source}, {self.about.bits} bits>"

    async def search(
        self, query: npt.ArrayLike, k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[Match]:
        """The k rows nearest to `query`, nearest first; k of them whenever k match.

        Other Parameters
        ----------------
        probes, shortlist : int
            Lists to read and rows to rank with the exact distance; None: the index's own choice.
        labels : float
            How much the labels count, from 0 to 1: 0 asks for the nearest vectors and nothing else, 0.5 for
            what the index learned to be best, 1 for the rows likeliest to share a label. None: the index's
            option `dial`.
        recall : float
            The share of the ten nearest rows that the search shall find: how much it reads follows from that,
            as held-out rows have shown. 1 reads the table itself. None: the index's own choice.
        max_distance : float
            No row farther than that, by the index's distance: fewer than k where there are fewer.
        filter : str
            A condition over the table's columns, written by you and never by your users: their values go in
            through `params`, which it reads as ``params ->> 'name'``.
        match : Mapping
            A condition on columns that the index includes, and on labels, as data:
            ``{"price": {"<": 100}, "status": ["new", "used"], "labels": {"none": ["sold"]}}``. A value asks
            for equality, a list for one of its values, None for NULL, a dict for ``=``, ``not``, ``<``,
            ``<=``, ``>`` and ``>=``; labels are asked for with ``any``, ``all`` and ``none``. Values may come
            from your users.
        """
        return [as_match(row) for row in await self._fetch(calls.search(self.name, query, k, options))]

    async def search_many(
        self, queries: npt.ArrayLike, k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[list[Match]]:
        """`search` for each row of a matrix, in one statement: one round trip, one snapshot."""
        call = calls.search_many(self.name, self.about, queries, k, options)
        return batches(len(call.parameters["queries"].values), await self._fetch(call))

    async def search_like(self, key: Any, k: int = 10, **options: Unpack[SearchOptions]) -> list[Match]:
        """The rows nearest to the row of that key, without that row; a key of several columns is a tuple.

        Takes the other arguments of `search`.
        """
        if self.about.distributed:
            # Citus would send one statement for both to the nodes, which lack the functions of the index.
            found = await self.search(await self.embedding(key), k + 1, **options)
            return [one for one in found if one.key != key][:k]
        rows = await self._fetch(calls.search_like(self.name, self.about, key, k, options))
        if not rows:
            await self.embedding(key)
        return [as_match(row) for row in rows]

    async def labels(self, query: npt.ArrayLike, k: int = 3) -> list[Suggestion]:
        """The k likeliest labels of a vector, the likeliest first, by its neighbors and by what was learned.

        Only labels of rows that this role can see are suggested.
        """
        return [Suggestion(*row) for row in await self._fetch(calls.labels(self.name, self.about, query, k))]

    async def labels_like(self, key: Any, k: int = 3) -> list[Suggestion]:
        """The k likeliest labels of the row of that key, whatever labels it has itself."""
        vector = await self.embedding(key)
        return [
            Suggestion(*row) for row in await self._fetch(calls.labels(self.name, self.about, vector, k, key))
        ]

    async def suggest(self, k: int = 3, *, rows: int = 1000, after_key: Any = None) -> list[Suggested]:
        """The k likeliest labels of each of the next `rows` rows that have none, in the order of the key.

        ``after_key=suggested[-1].key`` goes on with the rows after these.
        """
        return suggestions(await self._fetch(calls.suggest(self.name, self.about, k, rows, after_key)))

    async def embedding(self, key: Any) -> npt.NDArray[np.float32]:
        """The vector of a row; InputError where there is none that this role can see."""
        rows = await self._fetch(calls.embedding(self.about, key), binary=True)
        return one_vector(self.about, key, rows)

    async def candidates(self, query: npt.ArrayLike, probes: int | None = None) -> list[Match]:
        """All rows in the lists of the nearest centers, with a score that their geometry bits give."""
        return [as_match(row) for row in await self._fetch(calls.candidates(self.name, query, probes))]

    async def explain(
        self, query: npt.ArrayLike, k: int = 10, **options: Unpack[SearchOptions]
    ) -> dict[str, str]:
        """How a search would be answered: centers probed, entries read, what labels count, any fallback."""
        return dict(await self._fetch(calls.explain(self.name, query, k, options)))

    async def status(self) -> dict[str, Any]:
        """What foh.index_stat says of this index."""
        rows = await _rows(self._connection, calls.status(self.name), dict_row)
        if not rows:
            raise IndexNotFound.named(self.name)
        return dict(rows[0])

    async def check(self) -> list[dict[str, Any]]:
        """Violations of what the index promises; none if all is well. Reads the whole table."""
        return list(await _rows(self._connection, calls.invoke("check", {"name": self.name}), dict_row))

    async def refresh(self, *, embedding: str | None = None, labels: str | None = None) -> None:
        """Follow an ALTER of the table."""
        await self._fetch(
            calls.invoke(
                "refresh", calls.given({"name": self.name, "embedding": embedding, "labels": labels})
            )
        )
        again = await type(self).open(self._connection, self.name)
        self.about = again.about

    async def alter(self, **options: Any) -> None:
        """Change options: ``index.alter(probes=16, shortlist=50)``.

        ``index.alter(include=["price", "status"])`` says which columns the index includes from now on; the
        next update fills in new ones.
        """
        await self._fetch(calls.alter(self.name, options))

    async def grant(self, reader: str, *, revoke: bool = False) -> list[dict[str, Any]]:
        """Let a role search, or take it back; says what that exposes and what the role still lacks."""
        call = calls.invoke("grant", {"name": self.name, "reader": reader, "revoke": revoke})
        return list(await _rows(self._connection, call, dict_row))

    async def rename(self, new_name: str) -> None:
        """Give the index another name; an index that was built beside another so takes its place."""
        await self._fetch(calls.invoke("rename_index", {"name": self.name, "new_name": new_name}))
        self.name = new_name

    async def drop(self) -> None:
        """Drop the index with all that belongs to it; the table keeps its rows."""
        await self._fetch(calls.invoke("drop_index", {"name": self.name}))

    async def _fetch(self, call: Call, *, binary: bool = False) -> list[Any]:
        return await _rows(self._connection, call, binary=binary)


@asynccontextmanager
async def _link(connection: Connection) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """The connection itself, or one of the pool for as long as it is needed."""
    if isinstance(connection, psycopg.AsyncConnection):
        yield connection
    else:
        async with connection.connection() as pooled:
            yield pooled


async def _rows(
    connection: Connection, call: Call, row_factory: Any = tuple_row, *, binary: bool = False
) -> list[Any]:
    async with _link(connection) as link, link.cursor(row_factory=row_factory, binary=binary) as cursor:
        vectors.register(cursor)
        await cursor.execute(call.statement, call.parameters)
        return await cursor.fetchall()
