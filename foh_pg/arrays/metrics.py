"""How good a ranking by Hamming distance is: mean average precision, as the field measures it.

Two rows are relevant to each other when they share a label. Rows are ranked by distance, and rows at one
distance keep the order of the base, so shuffle a base that is sorted by anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, hamming_blocks
from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Labels, Vocabulary
from foh_pg.errors import InputError

# Ranks are made for at most this many pairs of query and row at once: memory does not grow with the queries.
BLOCK_PAIRS = 1 << 22


def mean_average_precision(
    queries: CodeArray, base: CodeArray, query_labels: Labels, base_labels: Labels
) -> float:
    """Rank the whole base for every query; queries without any relevant row are left out.

    Parameters
    ----------
    queries, base : arrays of uint8
        Packed codes.
    query_labels, base_labels : see `foh_pg.arrays.vocabulary.Vocabulary`
        Labels of both, in the same form.

    Examples
    --------
    >>> from foh_pg.arrays.codes import pack
    >>> base = pack([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
    >>> mean_average_precision(pack([[0, 0, 0]]), base, ["a"], ["a", "b", "a"])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    sets, names = Vocabulary().read(base_labels)
    wanted = _bit_sets(names.find(query_labels), len(names))
    stored = _bit_sets(sets, len(names))
    if (len(queries), len(base)) != (len(wanted), len(stored)):
        raise InputError(
            f"{len(queries)} queries and {len(base)} rows have labels for {len(wanted)} and {len(stored)}"
        )
    if len(queries) == 0 or len(base) == 0:
        raise InputError("there is nothing to measure: no query, or no row in the base")
    found: list[float] = []
    for start, distances in hamming_blocks(queries, base, BLOCK_PAIRS):
        found += _average_precisions(
            distances, _share_a_label(wanted[start : start + len(distances)], stored)
        )
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

    Examples
    --------
    >>> precisions(np.array([True, False, False, True]))
    array([1. , 0.5])
    """
    ranks = np.flatnonzero(relevant) + 1
    return np.arange(1, len(ranks) + 1) / ranks


def _bit_sets(sets: LabelSets, labels: int) -> npt.NDArray[np.uint64]:
    """Labels as words of 64 bits each: (rows, words)."""
    words = np.zeros((len(sets), max(1, -(-labels // 64))), dtype=np.uint64)
    rows = np.repeat(np.arange(len(sets)), sets.counts)
    np.bitwise_or.at(words, (rows, sets.ids // 64), np.uint64(1) << (sets.ids % 64).astype(np.uint64))
    # One contiguous column per word is what `_share_a_label` reads.
    return np.asfortranarray(words)


def _share_a_label(queries: npt.NDArray[np.uint64], base: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    shared = np.zeros((len(queries), len(base)), dtype=bool)
    for word in range(base.shape[1]):
        shared |= (queries[:, word, None] & base[None, :, word]) != 0
    return shared
