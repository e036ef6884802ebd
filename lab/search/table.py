"""The tables that the contenders search: loaded once, in binary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.arrays.labels import LabelSets
from foh_pg.clustering import unit
from foh_pg.postgres.binary_copy import INT4, INT8, TEXT, Array, Ragged, Vector, copy_in
from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.schema.migrations import migrate
from lab.dataset import Dataset

# Room for the rows and for one graph; a machine that serves searches has more. CPU is read from one process
# of the server, so a query must not spread over several.
SETTINGS = {
    "shared_buffers": "512MB",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "4GB",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}
# Queries whose distances to the whole base are computed at once.
BLOCK_QUERIES = 64
CREATE_INDEX = "SELECT foh.create_index(%s, %s::regclass, 'embedding', 'labels', bits => %s, options => %s)"


@dataclass(frozen=True)
class Rows:
    """A base in the database, and queries that are not in it."""

    data: Dataset
    base: npt.NDArray[np.int64]
    queries: npt.NDArray[np.int64]

    @property
    def dimensions(self) -> int:
        return int(self.data.X.shape[1])

    def relevant(self, query: int, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which rows of the base share a label with a query; both by their place."""
        wanted = self.data.sets.take(self.queries[query : query + 1]).ids
        found = self.data.sets.take(self.base[keys])
        hits = np.isin(found.ids, wanted)
        owner = np.repeat(np.arange(len(keys)), found.counts)
        return np.bincount(owner, weights=hits, minlength=len(keys)) > 0

    def distance(self, query: int, keys: npt.NDArray[np.int64]) -> float:
        """The mean cosine distance of rows of the base from a query; both by their place."""
        if not len(keys):
            return float("nan")
        asked = unit(self.data.X[self.queries[query : query + 1]])[0]
        return float(1 - (unit(self.data.X[self.base[keys]]) @ asked).mean())

    def truth(self, k: int, among: npt.NDArray[np.int64] | None = None) -> Truth:
        """What the best answers have, by exact cosine; `among` the rows at these places, else among all."""
        among = np.arange(len(self.base)) if among is None else among
        base = unit(self.data.X[self.base[among]])
        holders = _holders(self.data.sets.take(self.base[among]), len(self.data.label_names))
        nearest, alike = [], []
        for start in range(0, len(self.queries), BLOCK_QUERIES):
            asking = self.queries[start : start + BLOCK_QUERIES]
            for query, near in zip(asking, unit(self.data.X[asking]) @ base.T, strict=True):
                labels = self.data.sets.row(int(query))
                sharing = np.unique(np.concatenate([holders[label] for label in labels] or [among[:0]]))
                nearest.append(among[_largest(near, k)])
                alike.append(among[sharing[_largest(near[sharing], k)]])
        return Truth(nearest, alike)


@dataclass(frozen=True)
class Truth:
    """The exact answers to each query, by place in the base, the nearest first."""

    nearest: list[npt.NDArray[np.int64]]
    # The nearest among the rows that share a label with the query: fewer where there are fewer.
    alike: list[npt.NDArray[np.int64]]


def _largest(values: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """Where the k largest values are, in order."""
    best = np.argpartition(-values, k)[:k] if k < len(values) else np.arange(len(values))
    return np.asarray(best[np.argsort(-values[best], kind="stable")])


def _holders(sets: LabelSets, labels: int) -> list[npt.NDArray[np.int64]]:
    """The rows that have each label."""
    order = np.argsort(sets.ids, kind="stable")
    rows = np.repeat(np.arange(len(sets)), sets.counts)[order]
    return np.split(rows, np.searchsorted(sets.ids[order], np.arange(1, labels)))


def draw(data: Dataset, queries: int, rows: int | None, seed: int) -> Rows:
    """Draw queries at random; the other rows are the base, in the order of the file."""
    order = np.random.default_rng(seed).permutation(len(data.X))[: rows and rows + queries]
    return Rows(data, np.sort(order[queries:]), order[:queries])


@contextmanager
def database(version: int = 18, settings: dict[str, str] | None = None) -> Iterator[str]:
    """A server of the benchmark's own with pgvector and our schema; gives its connection string."""
    with (
        TemporaryDirectory(prefix="foh-bench-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data", version, {**SETTINGS, **(settings or {})}) as server,
    ):
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            migrate(connection)
        yield server.dsn()


def open_connection(dsn: str) -> psycopg.Connection[Any]:
    """A connection that speaks vectors."""
    connection = psycopg.connect(dsn, autocommit=True)
    register_vector(connection)
    return connection


def create_table(connection: psycopg.Connection[Any], dimensions: int) -> None:
    """Table items: id is the place of a row in the base; for the other columns see the functions below."""
    connection.execute(
        sql.SQL(
            "CREATE TABLE items (id bigint PRIMARY KEY, embedding vector({}), labels text[], "
            "price int, kin int)"
        ).format(sql.Literal(dimensions))
    )


def create_index(
    connection: psycopg.Connection[Any],
    name: str,
    bits: int,
    options: Mapping[str, Any] | None = None,
    on: str = "items",
) -> None:
    """An index of ours, not built yet."""
    connection.execute(CREATE_INDEX, (name, on, bits, Jsonb(dict(options or {}))))


def load(connection: psycopg.Connection[Any], rows: Rows) -> None:
    """Put the base into table items."""
    create_table(connection, rows.dimensions)
    insert(connection, rows, np.arange(len(rows.base)))
    connection.execute("VACUUM ANALYZE items")


def copy(connection: psycopg.Connection[Any], table: str) -> None:
    """The same rows again, so that the planner has one index to choose from and a write pays for one."""
    name = sql.Identifier(table)
    connection.execute(sql.SQL("CREATE TABLE {} AS SELECT * FROM items").format(name))
    connection.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(name))
    connection.execute(sql.SQL("VACUUM ANALYZE {}").format(name))


def price_of(places: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """The price of rows, a number below 100 000 that has nothing to do with their vectors."""
    return np.asarray(places * 69_621 % 99_991, dtype=np.int32)


def kin_of(rows: Rows, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """How far rows are from the first one, a number that has to do with their vectors."""
    near = unit(rows.data.X[rows.base[places]]) @ unit(rows.data.X[rows.base[:1]])[0]
    return np.asarray(100_000 * (1 - near), dtype=np.int32)


def insert(
    connection: psycopg.Connection[Any],
    rows: Rows,
    places: npt.NDArray[np.int64],
    shift: int = 0,
    into: str = "items",
) -> None:
    """Put rows of the base into a table under their places, moved by `shift`."""
    columns = (INT8, Vector(rows.dimensions), Array(TEXT), INT4, INT4)
    names = np.array(rows.data.label_names, dtype=object)
    for part in np.array_split(places, max(1, len(places) // 20_000)):
        sets = rows.data.sets.take(rows.base[part])
        bounds = np.concatenate([[0], np.cumsum(sets.counts)]).astype(np.int64)
        values = (
            part + shift,
            rows.data.X[rows.base[part]],
            Ragged(names[sets.ids], bounds),
            price_of(part),
            kin_of(rows, part),
        )
        names_of = ("id", "embedding", "labels", "price", "kin")
        copy_in(connection, sql.Identifier(into), names_of, columns, values)
