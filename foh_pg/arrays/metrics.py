"""How good a ranking by Hamming distance is: mAP, precision, recall, as the field measures them.

Two rows are relevant to each other when they share a label. Rows are ranked by distance, and rows at one
distance keep the order of the base, so shuffle a base that is sorted by anything. Everything is computed for
blocks of queries: memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, hamming_blocks
from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Labels, Vocabulary
from foh_pg.errors import InputError

FloatArray = npt.NDArray[np.float64]

# Ranks are made for at most this many pairs of query and row at once.
BLOCK_PAIRS = 1 << 22


@dataclass(frozen=True)
class Scores:
    """What `evaluate` found; means over queries.

    Attributes
    ----------
    mean_average_precision : float
        Over the whole base; queries without any relevant row are left out.
    mean_average_precision_at : dict of int to float
        Over the first N only, divided by the relevant rows among these N; queries with none there are left
        out.
    precision_at, recall_at : dict of int to float
        Share of relevant rows among the first k; share of the relevant rows found there.
    precision_within : float
        Share of relevant rows within the radius; a query with no row there counts as 0.
    curve_precision, curve_recall : arrays (bits + 1,)
        Over all pairs within radius 0, 1, ..., bits; precision is NaN where there is none.
    """

    mean_average_precision: float
    mean_average_precision_at: dict[int, float] = field(default_factory=dict)
    precision_at: dict[int, float] = field(default_factory=dict)
    recall_at: dict[int, float] = field(default_factory=dict)
    precision_within: float = float("nan")
    curve_precision: FloatArray = field(default_factory=lambda: np.zeros(0))
    curve_recall: FloatArray = field(default_factory=lambda: np.zeros(0))


def evaluate(
    queries: CodeArray,
    base: CodeArray,
    query_labels: Labels,
    base_labels: Labels,
    *,
    at: Sequence[int] = (10, 100),
    map_at: Sequence[int] = (),
    radius: int = 2,
) -> Scores:
    """Rank the whole base for every query and give all scores of the ranking.

    Parameters
    ----------
    queries, base : arrays of uint8
        Packed codes.
    query_labels, base_labels : see `foh_pg.arrays.vocabulary.Vocabulary`
        Labels of both, in the same form.
    at : sequence of int
        Where to take precision and recall.
    map_at : sequence of int
        Where to cut the ranking for mAP@N.
    radius : int
        Distance within which to take precision.

    Examples
    --------
    >>> from foh_pg.arrays.codes import pack
    >>> base = pack([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
    >>> scores = evaluate(pack([[0, 0, 0]]), base, ["a"], ["a", "b", "a"], at=(1, 2))
    >>> scores.mean_average_precision  # relevant at ranks 1 and 3: (1/1 + 2/3) / 2
    0.8333333333333333
    >>> scores.precision_at, scores.recall_at
    ({1: 1.0, 2: 0.5}, {1: 0.5, 2: 0.5})
    """
    _check_ranks([*at, *map_at])
    gathered = _Gathered(queries.shape[1] * 8, tuple(at), tuple(map_at), radius)
    for distances, relevant in _blocks(queries, base, query_labels, base_labels):
        gathered.add(distances, relevant)
    return gathered.scores()


def mean_average_precision(
    queries: CodeArray, base: CodeArray, query_labels: Labels, base_labels: Labels, *, at: int | None = None
) -> float:
    """Mean average precision over the whole base, or over the first `at` rows of each ranking."""
    scores = evaluate(queries, base, query_labels, base_labels, at=(), map_at=() if at is None else (at,))
    return scores.mean_average_precision if at is None else scores.mean_average_precision_at[at]


def precision_at(
    found: npt.NDArray[np.integer[Any]], query_labels: Labels, base_labels: Labels, k: int
) -> float:
    """Share of relevant rows among the first k of given rankings, whatever they were made by.

    Parameters
    ----------
    found : array (queries, at least k)
        Rows of the base in order of rank.

    Examples
    --------
    >>> import numpy as np
    >>> precision_at(np.array([[0, 2], [1, 0]]), ["a", "b"], ["a", "b", "a"], 2)
    0.75
    """
    _check_ranks([k])
    if found.shape[1] < k:
        raise InputError(f"precision at {k} needs {k} rows per query, the rankings have {found.shape[1]}")
    relevance = _Relevance.of(query_labels, base_labels)
    return float(np.mean([relevance.of_rows(i, rows[:k]).mean() for i, rows in enumerate(found)]))


def _check_ranks(ranks: Sequence[int]) -> None:
    for rank in ranks:
        if rank < 1:
            raise InputError(f"a rank to measure at must be at least 1, not {rank}")


@dataclass(frozen=True)
class _Relevance:
    """Labels of queries and base as bit sets: (rows, words) of 64 labels each."""

    queries: npt.NDArray[np.uint64]
    base: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, query_labels: Labels, base_labels: Labels) -> _Relevance:
        stored, names = Vocabulary().read(base_labels)
        return cls(_bit_sets(names.find(query_labels), len(names)), _bit_sets(stored, len(names)))

    def block(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Whether each row is relevant to each query of a block."""
        shared = np.zeros((stop - start, len(self.base)), dtype=bool)
        for word in range(self.base.shape[1]):
            shared |= (self.queries[start:stop, word, None] & self.base[None, :, word]) != 0
        return shared

    def of_rows(self, query: int, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Whether some rows are relevant to one query."""
        shared: npt.NDArray[np.bool_] = (self.queries[query] & self.base[rows]).any(axis=1)
        return shared


def _bit_sets(sets: LabelSets, labels: int) -> npt.NDArray[np.uint64]:
    words = np.zeros((len(sets), max(1, -(-labels // 64))), dtype=np.uint64)
    rows = np.repeat(np.arange(len(sets)), sets.counts)
    np.bitwise_or.at(words, (rows, sets.ids // 64), np.uint64(1) << (sets.ids % 64).astype(np.uint64))
    # One contiguous column per word is what `block` reads.
    return np.asfortranarray(words)


def _blocks(
    queries: CodeArray, base: CodeArray, query_labels: Labels, base_labels: Labels
) -> Iterator[tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]]:
    """Yield distances and relevance for blocks of queries, both in the order of the base."""
    relevance = _Relevance.of(query_labels, base_labels)
    if (len(queries), len(base)) != (len(relevance.queries), len(relevance.base)):
        raise InputError(
            f"{len(queries)} queries and {len(base)} rows have labels for "
            f"{len(relevance.queries)} and {len(relevance.base)}"
        )
    if len(queries) == 0 or len(base) == 0:
        raise InputError("there is nothing to measure: no query, or no row in the base")
    for start, distances in hamming_blocks(queries, base, BLOCK_PAIRS):
        yield distances, relevance.block(start, start + len(distances))


@dataclass
class _Gathered:
    """Sums over the blocks seen so far."""

    bits: int
    at: tuple[int, ...]
    map_at: tuple[int, ...]
    radius: int

    def __post_init__(self) -> None:
        self.queries = 0
        self.precisions: list[FloatArray] = []
        self.cut: dict[int, list[FloatArray]] = {n: [] for n in self.map_at}
        self.found: dict[int, list[FloatArray]] = {k: [] for k in self.at}
        self.recalled: dict[int, list[FloatArray]] = {k: [] for k in self.at}
        self.within: list[FloatArray] = []
        self.pairs = np.zeros(self.bits + 1)
        self.relevant_pairs = np.zeros(self.bits + 1)

    def add(self, distances: npt.NDArray[np.uint16], relevant: npt.NDArray[np.bool_]) -> None:
        order = np.argsort(distances, axis=1, kind="stable")
        ranked = np.take_along_axis(relevant, order, axis=1)
        total = np.count_nonzero(relevant, axis=1)
        self.precisions.append(_average_precision(ranked))
        for n in self.map_at:
            self.cut[n].append(_average_precision(ranked[:, :n]))
        for k in self.at:
            hits = np.count_nonzero(ranked[:, :k], axis=1)
            self.found[k].append(hits / min(k, ranked.shape[1]))
            with np.errstate(invalid="ignore"):
                self.recalled[k].append(hits / total)
        near = distances <= self.radius
        inside = np.count_nonzero(near, axis=1)
        self.within.append(np.count_nonzero(near & relevant, axis=1) / np.maximum(inside, 1))
        self.pairs += np.bincount(distances.ravel(), minlength=self.bits + 1)
        self.relevant_pairs += np.bincount(distances[relevant], minlength=self.bits + 1)

    def scores(self) -> Scores:
        pairs, relevant = np.cumsum(self.pairs), np.cumsum(self.relevant_pairs)
        with np.errstate(invalid="ignore"):
            precision, recall = relevant / pairs, relevant / relevant[-1]
        return Scores(
            _mean(self.precisions),
            {n: _mean(values) for n, values in self.cut.items()},
            {k: _mean(values) for k, values in self.found.items()},
            {k: _mean(values) for k, values in self.recalled.items()},
            _mean(self.within),
            precision,
            recall,
        )


def _average_precision(ranked: npt.NDArray[np.bool_]) -> FloatArray:
    """Average precision of each row of relevance in rank order; NaN where nothing is relevant."""
    result = np.full(len(ranked), np.nan)
    for i, row in enumerate(ranked):
        ranks = np.flatnonzero(row) + 1
        if len(ranks):
            result[i] = (np.arange(1, len(ranks) + 1) / ranks).mean()
    return result


def _mean(values: list[FloatArray]) -> float:
    joined = np.concatenate(values)
    known = joined[~np.isnan(joined)]
    return float(known.mean()) if len(known) else float("nan")
