"""The protocol: which rows are queries, base and stream, and in what order they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.vocabulary import Labels
from foh_pg.clustering import unit
from foh_pg.errors import InputError
from foh_pg.learners import Learner
from lab.dataset import Dataset

Rows = npt.NDArray[np.int64]
L = TypeVar("L", bound=Learner)

# How many of the nearest rows a recall counts, and how many queries are answered at a time.
NEAREST = 10
BLOCK_QUERIES = 64


@dataclass(frozen=True)
class Protocol:
    """How a data set is cut up. The defaults are the paper's for CIFAR-10."""

    # queries, stream, batch: queries are never rows of the base; the stream is part of the base, and comes in
    # batches. Small data sets get a tenth of their labelled rows as queries, and ten batches.
    queries: int = 1000
    stream: int = 20_000
    batch: int = 2000
    # Use at most this many rows of the data set, drawn at random.
    rows: int | None = None


@dataclass(frozen=True)
class Split:
    """One draw of queries, base and stream."""

    data: Dataset
    seed: int
    # queries, base: both in random order, so that ties in a ranking by row order are broken at random.
    queries: Rows
    base: Rows
    # The first rows of the base.
    stream: Rows
    # Rows per batch.
    batch: int

    @classmethod
    def draw(cls, data: Dataset, protocol: Protocol, seed: int) -> Split:
        """Draw a split by seed; rows without labels are part of the base and of the stream only."""
        rng = np.random.Generator(np.random.PCG64(seed))
        order = rng.permutation(len(data.X))[: protocol.rows]
        labelled = order[data.sets.counts[order] > 0]
        queries = labelled[: min(protocol.queries, max(1, len(labelled) // 10))]
        base = order[~np.isin(order, queries)]
        stream = base[: protocol.stream]
        if len(stream) < 2:
            raise InputError(f"{data.name} has too few rows for a benchmark: {len(data.X)}")
        batch = min(protocol.batch, max(1, -(-len(stream) // 10)))
        return cls(data, seed, queries, base, stream, batch)

    @cached_property
    def nearest(self) -> Rows:
        """The exact ten nearest of each query by cosine, by their place in the base."""
        base, k = unit(self.data.X[self.base]), min(NEAREST, len(self.base))
        found = np.empty((len(self.queries), k), dtype=np.int64)
        for start in range(0, len(self.queries), BLOCK_QUERIES):
            part = -(unit(self.data.X[self.queries[start : start + BLOCK_QUERIES]]) @ base.T)
            found[start : start + len(part)] = np.argsort(part, axis=1, kind="stable")[:, :k]
        return found

    @cached_property
    def alike(self) -> list[Rows]:
        """The ten nearest of each query among the rows that share a label with it, by place in the base."""
        base, columns = unit(self.data.X[self.base]), len(self.data.label_names)
        hot = self.data.sets.take(self.base).multi_hot(columns, np.float32)
        asked = self.data.sets.take(self.queries).multi_hot(columns, np.float32)
        found: list[Rows] = []
        for start in range(0, len(self.queries), BLOCK_QUERIES):
            part = -(unit(self.data.X[self.queries[start : start + BLOCK_QUERIES]]) @ base.T)
            sharing = asked[start : start + BLOCK_QUERIES] @ hot.T > 0
            for distances, mask in zip(part, sharing, strict=True):
                places = np.flatnonzero(mask)
                found.append(places[np.argsort(distances[places], kind="stable")[:NEAREST]])
        return found

    def distances(self, first: int, rows: Rows) -> npt.NDArray[np.float64]:
        """Mean cosine distance of rows of the base, (queries, n) by place, from queries `first` and on."""
        asked = unit(self.data.X[self.queries[first : first + len(rows)]])
        found = unit(self.data.X[self.base[rows.ravel()]]).reshape(*rows.shape, -1)
        return np.asarray(1 - np.einsum("qd,qnd->qn", asked, found).mean(axis=1), dtype=np.float64)

    def batches(self) -> Iterator[tuple[npt.NDArray[np.float32], Labels]]:
        """Yield rows and labels of the stream, batch by batch."""
        for start in range(0, len(self.stream), self.batch):
            rows = self.stream[start : start + self.batch]
            yield self.data.X[rows], self.data.labels(rows)

    def teach(self, learner: L) -> L:
        """Feed the stream to a learner, batch by batch, and return it."""
        for rows, labels in self.batches():
            learner.partial_fit(rows, labels)
        return learner

    def hide_labels(self, share: float) -> Split:
        """Return the same split in which a share of the rows, drawn at random, has no labels."""
        rng = np.random.Generator(np.random.PCG64([self.seed, 2]))
        return replace(self, data=self.data.without_labels(rng.random(len(self.data.X)) < share))
