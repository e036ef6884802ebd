"""The whole table read once, and the best rows of it for many queries: what an index is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import hamming
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model import Model, Vectors
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.tables.source import read_page

PAGE_ROWS = 4096

Values = npt.NDArray[np.float64]


@dataclass
class Best:
    """The rows with the smallest values so far, for each query: (queries, kept) each, in order."""

    values: Values
    keys: KeyArray
    distances: Values

    @classmethod
    def none(cls, index: IndexRow, queries: int) -> Best:
        empty = np.zeros((queries, 0))
        return cls(empty, np.empty((queries, 0), dtype=index.keys.dtype), empty)

    def offer(self, values: Values, keys: KeyArray, distances: Values, keep: int) -> None:
        """Take in a page of rows: values and distances are (queries, rows), keys are those of the rows."""
        joined = np.concatenate([self.values, values], axis=1)
        order = np.argsort(joined, axis=1, kind="stable")[:, :keep]
        everyone = np.broadcast_to(keys, values.shape)
        self.values = np.take_along_axis(joined, order, axis=1)
        self.keys = np.take_along_axis(np.concatenate([self.keys, everyone], axis=1), order, axis=1)
        distances = np.concatenate([self.distances, distances], axis=1)
        self.distances = np.take_along_axis(distances, order, axis=1)

    def first(self, k: int) -> list[KeyArray]:
        """The best k of each query."""
        return [row[:k] for row in self.keys]

    def ranked(self, k: int, shortlist: int, weight: float) -> list[KeyArray]:
        """The best k after a shortlist was ranked with the exact distance, as a search does it."""
        reach = max(k, shortlist)
        values = self.values[:, :reach]
        if shortlist:
            values = values + weight * self.distances[:, :reach]
        order = np.argsort(values, axis=1, kind="stable")[:, :k]
        return list(np.take_along_axis(self.keys[:, :reach], order, axis=1))


def scan(
    session: Session, run: Run, index: IndexRow, queries: Vectors, plain: Model, keep: int, total: int
) -> tuple[Best, Best, int]:
    """The nearest rows by the exact distance and by the codes of a model, and how many rows there are.

    Rows at one Hamming distance are put in a random order, the same in every evaluation.
    """
    exact, coded = Best.none(index, len(queries)), Best.none(index, len(queries))
    codes, drawn = plain.encode(queries), np.random.default_rng(int(index.options["seed"]))
    after, more, seen = None, True, 0
    while more:
        page = read_page(session, index, after, PAGE_ROWS)
        rows, after, more = page.rows, page.after, page.more
        seen += len(rows)
        run.step(seen, total)
        if not len(rows):
            continue
        distances = exact_distances(index, queries, rows.vectors)
        bits = hamming(codes, plain.encode(rows.vectors)).astype(np.float64)
        exact.offer(distances, rows.keys, distances, keep)
        # Less than one bit is added, which orders rows at the same distance and no others.
        coded.offer((bits + 0.5 * drawn.random(len(rows))) / index.bits, rows.keys, distances, keep)
    return exact, coded, seen


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
