"""The whole table read once, and its nearest rows for many queries: what an index is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg.model.model import Vectors
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.source import Rows, read_page

PAGE_ROWS = 4096

Values = npt.NDArray[np.float64]


@dataclass
class Best:
    """The nearest rows so far, for each query: (queries, kept) each, in order."""

    distances: Values
    keys: KeyArray

    @classmethod
    def none(cls, index: IndexRow, queries: int) -> Best:
        return cls(np.zeros((queries, 0)), np.empty((queries, 0), dtype=index.keys.dtype))

    def offer(self, distances: Values, keys: KeyArray, keep: int) -> None:
        """Take in a page of rows: distances are (queries, rows), keys are those of the rows."""
        joined = np.concatenate([self.distances, distances], axis=1)
        order = np.argsort(joined, axis=1, kind="stable")[:, :keep]
        everyone = np.broadcast_to(keys, distances.shape)
        self.distances = np.take_along_axis(joined, order, axis=1)
        self.keys = np.take_along_axis(np.concatenate([self.keys, everyone], axis=1), order, axis=1)

    def first(self, k: int) -> list[KeyArray]:
        """The nearest k of each query; fewer where only so many are at a finite distance."""
        return [row[:k][np.isfinite(far[:k])] for row, far in zip(self.keys, self.distances, strict=True)]


class Scanned(NamedTuple):
    """The nearest rows of every query, and how many rows the table has."""

    exact: Best
    # Of the rows that share a label with the query.
    alike: Best
    total: int


def scan(session: Session, run: Run, index: IndexRow, queries: Rows, keep: int, total: int) -> Scanned:
    """Read the whole table, and keep the nearest rows of each query, which may have labels."""
    exact, alike = (Best.none(index, len(queries)) for _ in range(2))
    after, more, seen = None, True, 0
    while more:
        page = read_page(session, index, after, PAGE_ROWS)
        rows, after, more = page.rows, page.after, page.more
        seen += len(rows)
        run.step(seen, total)
        if not len(rows):
            continue
        distances = exact_distances(index, queries.vectors, rows.vectors)
        exact.offer(distances, rows.keys, keep)
        alike.offer(np.where(sharing(queries, rows), distances, np.inf), rows.keys, keep)
    return Scanned(exact, alike, seen)


def sharing(queries: Rows, base: Rows) -> npt.NDArray[np.bool_]:
    """Whether each query shares a label with each row of the base."""
    numbers = {name: number for number, name in enumerate(sorted(set(queries.labels.values.tolist())))}
    left, right = (_label_matrix(rows.labels, numbers) for rows in (queries, base))
    return np.asarray((left @ right.T).toarray() > 0)


def _label_matrix(labels: Ragged, numbers: dict[str, int]) -> Any:
    """Which of these labels each row has, as a sparse matrix; a row may have others besides."""
    names = labels.values.tolist()
    ids = np.fromiter((numbers.get(name, -1) for name in names), dtype=np.int64, count=len(names))
    row, known = np.repeat(np.arange(labels.rows), labels.lengths), ids >= 0
    ones = np.ones(np.count_nonzero(known), dtype=np.float32)
    return sparse.csr_matrix((ones, (row[known], ids[known])), shape=(labels.rows, max(1, len(numbers))))


def exact_distances(index: IndexForm, queries: Vectors, rows: Vectors) -> Values:
    """What pgvector's operator gives for the distance of the index."""
    left, right = queries.astype(np.float64), rows.astype(np.float64)
    squares = np.einsum("nd,nd->n", left, left)[:, None], np.einsum("nd,nd->n", right, right)[None]
    if index.distance == "cosine":
        # A row of zeros stays as it is, and is orthogonal to all.
        left /= np.sqrt(np.where(squares[0] > 0, squares[0], 1))
        right /= np.sqrt(np.where(squares[1] > 0, squares[1], 1)).T
    # One matrix of all pairs, changed in place: it is the largest thing here.
    distances: Any = left @ right.T
    np.negative(distances, out=distances)
    if index.distance == "cosine":
        distances += 1
        # Nothing is near the origin: a search counts such rows as the farthest.
        distances[squares[0][:, 0] == 0] = 2.0
        distances[:, squares[1][0] == 0] = 2.0
    elif index.distance == "l2":
        distances *= 2
        distances += squares[0]
        distances += squares[1]
        np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
    return np.asarray(distances)
