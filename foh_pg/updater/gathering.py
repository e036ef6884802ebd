"""What is kept of a table for some queries while its rows pass by, to answer them as a search of it would.

A build offers every page that it places, so that the choice of a ranking is made on the whole table without
holding it in memory; a sample is offered at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import CodeArray, hamming_at
from foh_pg.model.model import Model
from foh_pg.model.ranking import LABEL_VOTERS, LABEL_VOTERS_TIMES
from foh_pg.model.signature import SIGNATURE_BYTES
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.tables.index_row import IndexForm
from foh_pg.tables.keys import member
from foh_pg.tables.source import Rows
from foh_pg.updater.scan import exact_distances, sharing

K = 10

# Of each query the nearest rows by bits are kept: well more than any search looks at.
KEPT = 1500
# They are taken from the lists that so many probes read, the most that are ever tried.
MOST_PROBES = 512
# The nearest by distance: as many as vote for suggested labels.
NEAREST = LABEL_VOTERS * LABEL_VOTERS_TIMES

# Rows that are compared with the queries at a time.
OFFERED = 2500

Records = npt.NDArray[np.void]
Ints = npt.NDArray[np.int64]

# Rows are numbered as they are offered. `relevant`: shares a label with the query.
NEAR = np.dtype([("far", np.float64), ("row", np.int32), ("relevant", np.bool_)], align=True)
# far, bits: by the first look at the query, and the estimate by all three. labels: one bit for each of 64.
NEAR_BY_BITS = np.dtype(
    [
        ("far", np.uint16),
        ("row", np.int32),
        ("home", np.int32),
        ("bits", np.int32),
        ("distance", np.float32),
        ("code", np.uint16),
        ("labels", np.uint64),
        ("relevant", np.bool_),
    ],
    align=True,
)


class Smallest:
    """The records with the smallest `far` of every query, of all that were offered."""

    def __init__(self, queries: int, most: int, kind: np.dtype[np.void]) -> None:
        self.most = most
        self.never = np.zeros((), dtype=kind)
        far = kind["far"]
        self.never["far"] = np.inf if far.kind == "f" else np.iinfo(far).max
        self.never["row"] = -1
        # What a record of each query must be below.
        self.bound = np.full(queries, self.never["far"])
        self._parts = [np.full((queries, 0), self.never)]

    def offer(self, query: Ints, records: Records) -> None:
        """Take in records, those of the first query first."""
        if not len(query):
            return
        count = np.bincount(query, minlength=len(self.bound))
        place = np.arange(len(query)) - np.repeat(np.cumsum(count) - count, count)
        part = np.full((len(count), count.max()), self.never)
        part[query, place] = records
        self._parts.append(part)
        if sum(one.shape[1] for one in self._parts) > 2 * self.most:
            self.settled()

    def settled(self) -> Records:
        """All that is kept, in order: (queries, at most `most`), `row` is -1 where there are fewer."""
        every = np.concatenate(self._parts, axis=1)
        order = np.argsort(np.ascontiguousarray(every["far"]), axis=1, kind="stable")[:, : self.most]
        found: Records = np.take_along_axis(every, order, axis=1)
        found = found[:, (found["row"] >= 0).any(axis=0)]
        self._parts = [found]
        if found.shape[1] == self.most:
            self.bound = found["far"][:, -1].copy()
        return found


class Gathered:
    """Queries, and what is kept for them of the rows that were offered.

    Parameters
    ----------
    labelled : bool
        Whether it counts which rows share a label with a query.
    probes : int
        How many lists are read at the most.
    """

    def __init__(
        self,
        index: IndexForm,
        model: Model,
        queries: Rows,
        levels: clustering.BitLevels,
        labelled: bool,
        probes: int = MOST_PROBES,
    ) -> None:
        self.index, self.model, self.queries, self.labelled = index, model, queries, labelled
        self.looks = model.query_looks(queries.vectors)
        self.codes = model.encode(queries.vectors)
        # In how many bits the second and the third look differ.
        everyone = np.arange(len(queries))
        self._apart = hamming_at(self.looks[1], self.looks[2], everyone, everyone).astype(np.int32)
        self.lists = clustering.ListsRead(self.looks, levels)
        self.levels = levels
        self._read = self.lists.by(probes)
        # How many rows were offered that are no queries.
        self.rows = 0
        self._nearest = Smallest(len(queries), NEAREST, NEAR)
        self._alike = Smallest(len(queries), K, NEAR)
        self._by_bits = Smallest(len(queries), KEPT, NEAR_BY_BITS)
        # The labels of the nearest rows, and the numbers of these rows.
        self.labels = Ragged(np.empty(0, dtype=object), np.zeros(1, dtype=np.int64))
        self.named = np.zeros(0, dtype=np.int64)

    @property
    def nearest(self) -> Records:
        """The nearest rows of each query."""
        return self._nearest.settled()

    @property
    def alike(self) -> Records:
        """The ten nearest that share a label with it."""
        return self._alike.settled()

    @property
    def by_bits(self) -> Records:
        """The nearest by bits, in the lists that a search may read."""
        return self._by_bits.settled()

    def offer(self, rows: Rows, held: dict[str, npt.NDArray[Any]], homes: Ints) -> None:
        """Take in rows, with what lists hold of them (see placing.held_of) and their homes."""
        if not len(self.queries):
            return
        others = ~member(rows.keys, self.queries.keys)
        rows, homes = rows.take(others), homes[others]
        geometry, marks = held["geometry"][others], held["marks"][others]
        first = self.rows
        for start in range(0, len(rows), OFFERED):
            part = slice(start, start + OFFERED)
            some = rows.take(np.arange(len(rows))[part])
            self._offer(some, geometry[part], marks[part], homes[part])
        if self.labelled:
            self._keep_labels(rows, first)

    def _offer(self, rows: Rows, geometry: CodeArray, marks: CodeArray, homes: Ints) -> None:
        distances = exact_distances(self.index, self.queries.vectors, rows.vectors)
        relevant = sharing(self.queries, rows) if self.labelled else np.zeros(distances.shape, dtype=bool)
        for kept, among in ((self._nearest, None), (self._alike, relevant)):
            inside = distances < kept.bound[:, None]
            query, at = _true_at(inside if among is None else inside & among)
            near = np.empty(len(at), dtype=NEAR)
            near["far"], near["row"] = distances[query, at], self.rows + at
            near["relevant"] = relevant[query, at]
            kept.offer(query, near)
        query, at = _true_at(self._read[:, homes])
        far = hamming_at(self.looks[0], geometry, query, at)
        inside = far < self._by_bits.bound[query]
        query, at, far = query[inside], at[inside], far[inside]
        found = np.empty(len(at), dtype=NEAR_BY_BITS)
        found["far"], found["row"], found["home"] = far, self.rows + at, homes[at]
        above, below = (hamming_at(look, geometry, query, at) for look in self.looks[1:])
        found["bits"] = far.astype(np.int32) + above + below - self._apart[query]
        found["distance"], found["relevant"] = distances[query, at], relevant[query, at]
        found["code"] = hamming_at(self.codes, self.model.codes_of(marks), query, at)
        found["labels"] = _as_numbers(marks)[at] if self.model.signed else 0
        self._by_bits.offer(query, found)
        self.rows += len(rows)

    def _keep_labels(self, rows: Rows, first: int) -> None:
        """Keep the labels of the rows that are now among the nearest; these are numbered from `first` on."""
        used = np.unique(self.nearest["row"])
        before, new = np.isin(self.named, used), used[used >= first] - first
        parts = [self.labels.choose(before), rows.labels.take(new)]
        self.labels = Ragged.join(parts)
        self.named = np.concatenate([self.named[before], new + first])


def _true_at(mask: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Row and column of each true value, in a third of the time that numpy.nonzero takes."""
    return np.divmod(np.flatnonzero(mask), max(1, mask.shape[1]))


def _as_numbers(marks: CodeArray) -> npt.NDArray[np.uint64]:
    """The signatures in marks, each as one number."""
    return np.ascontiguousarray(marks[:, :SIGNATURE_BYTES]).view(np.uint64)[:, 0]
