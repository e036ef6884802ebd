"""What the query pool costs in accuracy: only the rows on the lists of a query's centers are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import CodeArray, hamming, hamming_rows, nearest, smallest
from foh_pg.arrays.metrics import precisions
from foh_pg.geometry import Geometry, default_bits
from foh_pg.learners import Learner
from lab.accuracy.stream_centers import sample_centers
from lab.protocol import Split
from lab.relevance import Relevance

Rows = npt.NDArray[np.int64]

# The paper's u, v and beta (its table of parameters, CIFAR-10).
CENTERS, NEIGHBORS, PROBES = 500, 500, 10


@dataclass(frozen=True)
class Pooled:
    """Means over queries of what a pool returns."""

    # The authors' mAP: over the candidates, divided by the relevant rows among them. It rises when a pool
    # loses relevant rows that would have come last; compare it with nothing else.
    map_of_candidates: float
    # Share of relevant rows among the first k.
    precision_at: dict[int, float]
    # Rows ranked per query.
    candidates: float
    # Share of the rows that are on any list.
    reachable: float

    def describe(self) -> dict[str, Any]:
        """Give plain numbers."""
        return {
            "map_of_candidates": round(self.map_of_candidates, 5),
            "precision_at": {str(k): round(value, 5) for k, value in self.precision_at.items()},
            "candidates": round(self.candidates, 1),
            "reachable": round(self.reachable, 4),
        }


def measure(ranked: Sequence[Rows], relevance: Relevance, reachable: float) -> Pooled:
    """Score the candidates of every query, given in order of rank."""
    averages: list[float] = []
    hits: dict[int, list[float]] = {10: [], 100: []}
    for query, rows in enumerate(ranked):
        relevant = relevance.block(query, query + 1)[0, rows]
        if relevant.any():
            averages.append(float(precisions(relevant).mean()))
        for k, found in hits.items():
            found.append(np.count_nonzero(relevant[:k]) / k)
    return Pooled(
        float(np.mean(averages)) if averages else float("nan"),
        {k: float(np.mean(found)) for k, found in hits.items()},
        float(np.mean([len(rows) for rows in ranked])),
        reachable,
    )


def paper_pool(learner: Learner, split: Split) -> Pooled:
    """Measure the paper's pool over the base: the nearest rows of random centers, by Hamming distance."""
    codes = learner.encode(split.data.X[split.base])
    count, length = sizes(len(codes))
    centers = np.random.default_rng(split.seed).choice(len(codes), count, replace=False)
    lists = nearest(codes[centers], codes, length)[0]
    asked = learner.encode(split.data.X[split.queries])
    ranked = ranked_by_codes(asked, codes, centers, lists)
    return measure(ranked, _relevance(split), len(np.unique(lists)) / len(codes))


def homes_pool(learner: Learner, split: Split) -> Pooled:
    """Measure this package's pool: every row on the list of its nearest center.

    Rows of the probed lists are ranked by code and embedding; a search ranks by more than these.
    """
    X, bits = split.data.X, learner.bits
    codes, rows = learner.encode(X[split.base]), X[split.base]
    target = clustering.target_centers(len(rows))
    geometry = Geometry.fit(rows, default_bits(rows.shape[1]), "cosine", split.seed)
    compared = geometry.compared(rows)
    made = clustering.make_levels(np.random.default_rng(split.seed), compared, target)
    levels = clustering.by_bits(made, compared, geometry)
    home = clustering.find_homes(geometry.encode(rows), levels, geometry.layout)
    bounds = np.cumsum(np.bincount(home, minlength=len(levels.centers)))
    order = np.argsort(home, kind="stable")
    lists = np.split(order, bounds[:-1])
    asked, queries = learner.encode(X[split.queries]), X[split.queries]
    probed = clustering.ListsRead(geometry.query_looks(queries), levels).by(PROBES)
    ranked = []
    for query, near in enumerate(probed):
        found = np.concatenate([lists[i] for i in np.flatnonzero(near)])
        different = hamming(asked[query : query + 1], codes[found])[0] / bits
        apart = (
            1
            - clustering.unit(rows[found].astype(np.float32))
            @ clustering.unit(queries[[query]].astype(np.float32))[0]
        )
        ranked.append(found[np.argsort(different + apart, kind="stable")])
    return measure(ranked, _relevance(split), 1.0)


def sizes(rows: int) -> tuple[int, int]:
    """Centers and list length of the paper's pool, smaller where there are few rows."""
    return min(CENTERS, max(1, rows // 10)), min(NEIGHBORS, max(1, rows // 10))


def ranked_by_codes(asked: CodeArray, codes: CodeArray, centers: Rows, lists: Rows) -> list[Rows]:
    """Read the lists of each query's nearest centers and rank their rows by Hamming distance."""
    probed = nearest(asked, codes[centers], PROBES)[0]
    ranked = []
    for query, near in enumerate(probed):
        found = np.unique(lists[near])
        distances = hamming(asked[query : query + 1], codes[found])[0]
        ranked.append(found[np.argsort(distances, kind="stable")])
    return ranked


def _relevance(split: Split) -> Relevance:
    return Relevance.of(split.data, split.queries, split.base)


class StreamPool:
    """The paper's pool as it grows with the stream, its centers renewed every few batches only.

    `every`: renew centers with every so many batches. `centers`, `length`: how many centers, and rows per
    list. `seed`: seed of the sample of centers.
    """

    def __init__(self, every: int, centers: int, length: int, seed: int) -> None:
        self.every = every
        self.target = centers
        self.length = length
        self.rng = np.random.default_rng(seed)
        self.centers: Rows = np.zeros(0, dtype=np.int64)
        self.priorities = np.zeros(0)
        self.lists: Rows = np.zeros((0, 0), dtype=np.int64)
        self.waiting: Rows = np.zeros(0, dtype=np.int64)
        self.batches = 0

    def update(self, new: Rows, codes: CodeArray) -> None:
        """Take in a batch: lists from their members and the new rows, and perhaps new centers.

        `new`: positions of the new rows in the stream. `codes`: present codes of all rows of the stream so
        far.
        """
        self.waiting = np.concatenate([self.waiting, new])
        if len(self.centers):
            self._renew_lists(new, codes)
        if self.batches % self.every == 0:
            self._renew_centers(codes)
        self.batches += 1

    def _renew_lists(self, new: Rows, codes: CodeArray) -> None:
        count, length = self.lists.shape
        members = hamming_rows(np.repeat(codes[self.centers], length, axis=0), codes[self.lists.ravel()])
        distances = np.hstack([members.reshape(count, length), hamming(codes[self.centers], codes[new])])
        candidates = np.hstack([self.lists, np.broadcast_to(new, (count, len(new)))])
        kept = smallest(distances, min(self.length, candidates.shape[1]))
        self.lists = np.take_along_axis(candidates, kept, axis=1)

    def _renew_centers(self, codes: CodeArray) -> None:
        change = sample_centers(
            self.rng, self.priorities, len(self.waiting), len(codes), min(self.target, len(codes))
        )
        known = np.union1d(self.lists.ravel(), self.waiting)
        chosen = self.waiting[change.chosen]
        found, _ = nearest(codes[chosen], codes[known], self.length)
        lists = known[found]
        self.waiting = self.waiting[:0]
        stays = np.delete(np.arange(len(self.centers)), change.dropped)
        self.centers = np.concatenate([self.centers[stays], chosen])
        self.priorities = np.concatenate([self.priorities[stays], change.priorities])
        # Lists made when fewer rows were known are shorter; a repeated member does no harm in a list.
        old = self.lists[stays]
        if len(old) and old.shape[1] < lists.shape[1]:
            old = np.pad(old, ((0, 0), (0, lists.shape[1] - old.shape[1])), mode="edge")
        self.lists = np.concatenate([old, lists]) if len(old) else lists


def updating(learner: Learner, split: Split, every: Sequence[int]) -> dict[int, Pooled]:
    """Train on the stream with pools beside it that renew their centers every so many batches."""
    X = split.data.X[split.stream]
    centers, length = sizes(len(X))
    pools = {n: StreamPool(n, centers, length, split.seed) for n in every}
    seen = 0
    for rows, labels in split.batches():
        learner.partial_fit(rows, labels)
        new = np.arange(seen, seen + len(rows))
        seen += len(rows)
        codes = learner.encode(X[:seen])
        for grown in pools.values():
            grown.update(new, codes)
    asked = learner.encode(split.data.X[split.queries])
    relevance = Relevance.of(split.data, split.queries, split.stream)
    return {
        n: measure(
            ranked_by_codes(asked, codes, grown.centers, grown.lists),
            relevance,
            len(np.unique(grown.lists)) / len(codes),
        )
        for n, grown in pools.items()
    }
