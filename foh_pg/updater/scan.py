"""The whole table read once, and the best rows of it for many queries: what an index is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import hamming
from foh_pg.arrays.labels import LabelSets
from foh_pg.learners.similarity import label_matrix
from foh_pg.model.model import Model, Vectors, label_lists
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.source import Rows, read_page

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
        """The best k of each query; fewer where only so many have a value."""
        return [row[:k][np.isfinite(values[:k])] for row, values in zip(self.keys, self.values, strict=True)]

    def ranked(self, k: int, shortlist: int, weight: float) -> list[KeyArray]:
        """The best k after a shortlist was ranked with the exact distance, as a search does it."""
        reach = max(k, shortlist)
        values = self.values[:, :reach]
        if shortlist:
            values = values + weight * self.distances[:, :reach]
        order = np.argsort(values, axis=1, kind="stable")[:, :k]
        return list(np.take_along_axis(self.keys[:, :reach], order, axis=1))


class Scanned(NamedTuple):
    """The best rows of every query, and how many rows the table has."""

    # exact, alike: by the exact distance; of all rows, and of those that share a label with the query.
    exact: Best
    alike: Best
    # By the codes of a model.
    coded: Best
    total: int


def scan(
    session: Session, run: Run, index: IndexRow, queries: Rows, plain: Model, keep: int, total: int
) -> Scanned:
    """Read the whole table, and keep the best rows of each query, which may have labels.

    Rows at one Hamming distance are put in a random order, the same in every evaluation.
    """
    exact, alike, coded = (Best.none(index, len(queries)) for _ in range(3))
    codes, drawn = plain.encode(queries.vectors), np.random.default_rng(int(index.options["seed"]))
    after, more, seen = None, True, 0
    while more:
        page = read_page(session, index, after, PAGE_ROWS)
        rows, after, more = page.rows, page.after, page.more
        seen += len(rows)
        run.step(seen, total)
        if not len(rows):
            continue
        distances = exact_distances(index, queries.vectors, rows.vectors)
        bits = hamming(codes, plain.encode(rows.vectors)).astype(np.float64)
        exact.offer(distances, rows.keys, distances, keep)
        alike.offer(np.where(sharing(queries, rows), distances, np.inf), rows.keys, distances, keep)
        # Less than one bit is added, which orders rows at the same distance and no others.
        coded.offer((bits + 0.5 * drawn.random(len(rows))) / index.bits, rows.keys, distances, keep)
    return Scanned(exact, alike, coded, seen)


def sharing(queries: Rows, base: Rows) -> npt.NDArray[np.bool_]:
    """Whether each query shares a label with each row of the base."""
    names = dict.fromkeys([*queries.labels.values.tolist(), *base.labels.values.tolist()])
    numbers = {name: number for number, name in enumerate(names)}
    left, right = (
        label_matrix(LabelSets.named(label_lists(rows.labels), numbers), len(numbers))
        for rows in (queries, base)
    )
    return np.asarray((left @ right.T).toarray() > 0)


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
