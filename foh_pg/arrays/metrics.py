"""What answers are measured by: precision by label, recall of the nearest, both at once, and mAP.

Two rows are relevant to each other when they share a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, hamming_blocks
from foh_pg.arrays.labels import LabelSets

# Ranks are made for at most this many pairs of query and row at once: memory does not grow with the queries.
BLOCK_PAIRS = 1 << 22


# What people are told where these figures stand; k is ten or a hundred.
PRECISION_IS = "P@k is the share of the k rows returned that share a label with the query"
RECALL_IS = "recall@k is the share of the k nearest rows that was returned"
BOTH_IS = "both@k is the share, of the k nearest rows that share a label with the query, that was returned"


class Judged(NamedTuple):
    """How good the answer to one query is, in both senses; not a number where there was nothing to find."""

    precision: float
    recall: float
    both: float


def judge(
    answer: Sequence[Any], relevant: int, k: int, nearest: Sequence[Any], alike: Sequence[Any]
) -> Judged:
    """Judge an answer to a query for k rows; `relevant` of the rows returned share a label with it.

    `nearest`: the k nearest rows; `alike`: the k nearest of those that share a label with the query.

    >>> judge(["a", "b"], relevant=1, k=2, nearest=["b", "c"], alike=["b", "d"])
    Judged(precision=0.5, recall=0.5, both=0.5)
    """
    returned = set(answer)
    return Judged(relevant / k, share_found(returned, nearest), share_found(returned, alike))


def share_found(answer: Collection[Any], wanted: Sequence[Any]) -> float:
    """The share of the rows that are wanted which the answer has; not a number where none is wanted.

    >>> share_found({1, 2, 3}, [1, 4])
    0.5
    """
    return sum(key in answer for key in wanted) / len(wanted) if len(wanted) else float("nan")


def mean_of(values: Sequence[float]) -> float:
    """The mean of the values that are numbers; not a number where none is.

    >>> mean_of([0.5, 1.0, float("nan")])
    0.75
    """
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def standard_error(values: Sequence[float]) -> float:
    """How far the mean of other queries would typically be from that of these.

    >>> round(standard_error([0.0, 1.0, 0.0, 1.0]), 4)
    0.2887
    """
    known = [value for value in values if not np.isnan(value)]
    return float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else float("nan")


def mean_average_precision(
    queries: CodeArray, base: CodeArray, wanted: LabelSets, stored: LabelSets
) -> float:
    """Rank the whole base by Hamming distance; queries without any relevant row are left out.

    `wanted`, `stored`: the labels of queries and base, by the same numbers.

    Rows at one distance keep the order of the base, so shuffle a base that is sorted by anything.

    >>> from foh_pg.arrays.codes import pack
    >>> base = pack([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
    >>> wanted, stored = LabelSets.single([0]), LabelSets.single([0, 1, 0])
    >>> mean_average_precision(pack([[0, 0, 0]]), base, wanted, stored)  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    labels = 1 + max(int(sets.ids.max(initial=0)) for sets in (wanted, stored))
    asked, there = (_bit_sets(sets, labels) for sets in (wanted, stored))
    found: list[float] = []
    for start, distances in hamming_blocks(queries, base, BLOCK_PAIRS):
        relevant = _share_a_label(asked[start : start + len(distances)], there)
        found += _average_precisions(distances, relevant)
    return float(np.mean(found)) if found else float("nan")


def _average_precisions(
    distances: npt.NDArray[np.uint16], relevant: npt.NDArray[np.bool_]
) -> Iterator[float]:
    for row in np.take_along_axis(relevant, np.argsort(distances, axis=1, kind="stable"), axis=1):
        found = precisions(row)
        if len(found):
            yield float(found.mean())


def precisions(relevant: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """The precision at each relevant row of a ranking; their mean is the average precision.

    >>> precisions(np.array([True, False, False, True]))
    array([1. , 0.5])
    """
    ranks = np.flatnonzero(relevant) + 1
    return np.arange(1, len(ranks) + 1) / ranks


def _bit_sets(sets: LabelSets, labels: int) -> npt.NDArray[np.uint64]:
    """Labels as words of 64 bits each: (rows, words)."""
    words = np.zeros((len(sets), -(-labels // 64)), dtype=np.uint64)
    rows = np.repeat(np.arange(len(sets)), sets.counts)
    np.bitwise_or.at(words, (rows, sets.ids // 64), np.uint64(1) << (sets.ids % 64).astype(np.uint64))
    # One contiguous column per word is what `_share_a_label` reads.
    return np.asfortranarray(words)


def _share_a_label(queries: npt.NDArray[np.uint64], base: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    shared = np.zeros((len(queries), len(base)), dtype=bool)
    for word in range(base.shape[1]):
        shared |= (queries[:, word, None] & base[None, :, word]) != 0
    return shared
