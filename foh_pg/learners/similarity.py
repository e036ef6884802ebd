"""Similarity of label sets, and sums of codes weighted by it, without the n x m matrix (Eq. 9-13).

Rows with equal label sets have equal rows and columns in S, so everything is computed between distinct sets.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg.arrays.labels import Groups, LabelSets
from foh_pg.learners.rows import FloatArray

Kind = Literal["equal", "graded", "shared"]

# Similarities between distinct sets are made in blocks of at most this many.
BLOCK_PAIRS = 1 << 21

# The share of similar pairs is estimated on this many rows.
BALANCE_ROWS = 1024


def label_matrix(sets: LabelSets, labels: int, dtype: npt.DTypeLike = np.float32) -> Any:
    """Give L' (rows, labels) as a sparse matrix."""
    ones = np.ones(len(sets.ids), dtype=dtype)
    return sparse.csr_matrix((ones, sets.ids, sets.offsets), shape=(len(sets), labels))


def similarity(
    kind: Kind, a: LabelSets, b: LabelSets, labels: int, dtype: npt.DTypeLike = np.float64
) -> FloatArray:
    """Similarity of every set of `a` to every set of `b`.

    "graded" is the mean share of common labels (Eq. 9-11), "shared" is 1 where any label is common, "equal"
    is 1 where all are (Eq. 13, before the balance factors).

    >>> a, b = LabelSets.of([[0, 1]]), LabelSets.of([[0], [0, 1], [2]])
    >>> similarity("graded", a, b, 3)
    array([[0.75, 1.  , 0.  ]])
    >>> similarity("shared", a, b, 3)
    array([[1., 1., 0.]])
    >>> similarity("equal", a, b, 3)
    array([[0., 1., 0.]])
    """
    common: FloatArray = label_matrix(a, labels, dtype) @ b.multi_hot(labels, dtype).T
    if kind == "shared":
        common = (common > 0).astype(dtype)
    elif kind == "equal":
        common = ((common == a.counts[:, None]) & (common == b.counts)).astype(dtype)
    else:
        # A common label is worth the mean of 1/|A| and 1/|B|.
        worth_a, worth_b = (0.5 / np.maximum(side.counts, 1).astype(dtype) for side in (a, b))
        common *= worth_a[:, None] + worth_b
    return common


def similar_to(
    kind: Kind, sets: LabelSets, others: LabelSets, sums: FloatArray, labels: int
) -> tuple[FloatArray, FloatArray]:
    """Sum codes of other rows by their similarity to each of `sets`, and those of all that share a label.

    `others` are the distinct label sets of the other side, and `sums` (others, k) the sums of their codes.
    """
    similar = np.zeros((len(sets), sums.shape[1]), dtype=sums.dtype)
    sharing = np.zeros_like(similar)
    step = max(1, BLOCK_PAIRS // max(1, len(sets)))
    for start in range(0, len(others), step):
        part = others.take(np.arange(start, min(start + step, len(others))))
        block = similarity(kind, sets, part, labels, sums.dtype)
        codes = sums[start : start + step]
        similar += block @ codes
        if kind != "shared":
            sharing += (block > 0).astype(sums.dtype) @ codes
    return similar, similar if kind == "shared" else sharing


def balance(kind: Kind, groups: Groups, labels: int, eta_s: float, eta_d: float) -> tuple[float, float]:
    """Weigh similar and dissimilar pairs so that both sum up to the same, by their observed frequency.

    With c equally frequent labels the ratio of the two factors is `c - 1`. Neither falls below what it was:
    were the larger one to stay and the smaller one to fall, the pull of a few similar rows would drown, with
    many labels, in the coupling of the bits. Without a pair of either kind the factors stay as they are.

    >>> two_labels = LabelSets.single([0, 0, 0, 1, 1, 1]).group()
    >>> balance("equal", two_labels, 2, 1.6, 0.2)  # 6 similar pairs, 9 dissimilar ones
    (1.6, 1.0666666666666667)
    """
    similar, dissimilar = _pairs(kind, groups, labels)
    if similar == 0 or dissimilar == 0:
        return eta_s, eta_d
    ratio = similar / dissimilar
    return max(eta_s, eta_d / ratio), max(eta_d, eta_s * ratio)


def _pairs(kind: Kind, groups: Groups, labels: int) -> tuple[float, float]:
    """Similar pairs, each counted by its similarity, and dissimilar pairs; of all rows or of a sample."""
    if kind == "equal":
        sizes = groups.sizes.astype(np.float64)
        same = float((sizes * (sizes - 1)).sum())
        return same, float(sizes.sum() * (sizes.sum() - 1) - same)
    rows = groups.of_row
    if len(rows) > BALANCE_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, BALANCE_ROWS).astype(np.int64)]
    sets = groups.sets.take(rows)
    found = similarity(kind, sets, sets, labels, np.float32)
    np.fill_diagonal(found, 0)
    return float(found.sum()), float(np.count_nonzero(found == 0) - len(found))
