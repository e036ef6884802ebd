"""How good rankings are, whatever they were made by: codes, vectors or a classifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, hamming_blocks
from foh_pg.arrays.metrics import mean_of, precisions, share_found
from foh_pg.clustering import unit
from lab.dataset import Dataset
from lab.protocol import NEAREST, Split

# Where precision is taken.
RANKS = (1, 10, 100, 1000)

# Queries whose distances to the whole base exist at once.
BLOCK_QUERIES = 64

Blocks = Iterable[tuple[int, npt.NDArray[Any]]]


@dataclass(frozen=True)
class Quality:
    """Means over queries, and what precision is the mean of."""

    # Over the whole base. Rows at equal distance are in the order of the base, which is random.
    mean_average_precision: float
    # For each k, of each query the share of relevant rows among the first k.
    shares: dict[int, npt.NDArray[np.float64]]
    # recall, both, distance: of the first ten; see `foh_pg.arrays.metrics.judge`; the mean cosine distance.
    recall: float
    both: float
    distance: float

    @property
    def precision_at(self) -> dict[int, float]:
        """Mean share of relevant rows among the first k."""
        return {k: float(found.mean()) for k, found in self.shares.items()}


@dataclass(frozen=True)
class Relevance:
    """Which rows of the base share a label with which query."""

    queries: npt.NDArray[np.float32]
    base: npt.NDArray[np.float32]

    @classmethod
    def of(cls, data: Dataset, queries: npt.NDArray[np.int64], base: npt.NDArray[np.int64]) -> Relevance:
        """Look up the labels of both."""
        labels = len(data.label_names)
        return cls(
            data.sets.take(queries).multi_hot(labels, np.float32),
            data.sets.take(base).multi_hot(labels, np.float32),
        )

    def block(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Give (queries, base) for some queries."""
        return np.asarray(self.queries[start:stop] @ self.base.T > 0)


def measure(blocks: Blocks, split: Split) -> Quality:
    """Rank the base for every query by given distances.

    `blocks`: distances of some queries to the whole base, block after block. `split`: whose queries and base
    they are.
    """
    relevance = Relevance.of(split.data, split.queries, split.base)
    averages: list[float] = []
    hits: dict[int, list[float]] = {k: [] for k in RANKS if k <= len(split.base)}
    near: list[float] = []
    alike: list[float] = []
    far: list[float] = []
    for start, distances in blocks:
        order = np.argsort(distances, axis=1, kind="stable")
        first = order[:, :NEAREST]
        far.extend(split.distances(start, first))
        for query, answer in enumerate(map(set, first.tolist()), start):
            near.append(share_found(answer, split.nearest[query].tolist()))
            alike.append(share_found(answer, split.alike[query].tolist()))
        ranked = np.take_along_axis(relevance.block(start, start + len(distances)), order, axis=1)
        for k, found in hits.items():
            found.extend(ranked[:, :k].mean(axis=1))
        for row in ranked:
            precision = precisions(row)
            # A query with nothing to find says nothing about a ranking.
            if len(precision):
                averages.append(float(precision.mean()))
    return Quality(
        float(np.mean(averages)) if averages else float("nan"),
        {k: np.array(found) for k, found in hits.items()},
        mean_of(near),
        mean_of(alike),
        float(np.mean(far)),
    )


def by_codes(queries: CodeArray, base: CodeArray) -> Blocks:
    """Distances of codes."""
    return hamming_blocks(queries, base, BLOCK_QUERIES * max(1, len(base)))


def by_vectors(queries: npt.NDArray[np.floating[Any]], base: npt.NDArray[np.floating[Any]]) -> Blocks:
    """Cosine distances of vectors."""
    left, right = unit(queries), unit(base)
    return ((start, -(block @ right.T)) for start, block in _in_blocks(left))


def by_scores(queries: npt.NDArray[np.floating[Any]], base: npt.NDArray[np.floating[Any]]) -> Blocks:
    """Inner products, largest first."""
    return ((start, -(block @ base.T)) for start, block in _in_blocks(queries))


def _in_blocks(rows: npt.NDArray[Any]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    for start in range(0, len(rows), BLOCK_QUERIES):
        yield start, rows[start : start + BLOCK_QUERIES]
