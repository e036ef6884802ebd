"""Lloyd's k-means by products of matrices: the one algorithm behind areas, centers and splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg.clustering.distance import Metric, Values, nearness, unit

# Rows times centers at once: large enough for BLAS, small enough for the cache.
BLOCK_PAIRS = 1 << 21


def cluster(rng: np.random.Generator, rows: Values, count: int, iterations: int, metric: Metric) -> Values:
    """Find `count` centers of rows; fewer where there are fewer rows.

    Parameters
    ----------
    rows : array (n, d)
        For cosine of length one.

    Returns
    -------
    array (min(count, n), d)
        Means of rows; for cosine scaled to length one.

    Examples
    --------
    >>> rows = np.array([[0, 0], [0, 1], [9, 9], [9, 8]], dtype=np.float32)
    >>> np.sort(cluster(np.random.default_rng(0), rows, 2, 5, "l2"), axis=0)
    array([[0. , 0.5],
           [9. , 8.5]], dtype=float32)
    """
    count = min(count, len(rows))
    centers = rows[np.sort(rng.choice(len(rows), count, replace=False))]
    if count == len(rows) or count < 1:
        return np.array(centers)
    for _ in range(iterations):
        nearest, near = assign(rows, centers, metric)
        centers = _means(rng, rows, nearest, near, centers, metric)
    return centers


def assign(rows: Values, centers: Values, metric: Metric) -> tuple[npt.NDArray[np.int64], Values]:
    """The nearest center of every row, and how near it is (see `nearness`)."""
    nearest = np.empty(len(rows), dtype=np.int64)
    near = np.empty(len(rows), dtype=np.float32)
    step = max(1, BLOCK_PAIRS // max(1, len(centers)))
    for start in range(0, len(rows), step):
        block = nearness(rows[start : start + step], centers, metric)
        best = block.argmax(axis=1)
        nearest[start : start + step] = best
        near[start : start + step] = np.take_along_axis(block, best[:, None], axis=1)[:, 0]
    return nearest, near


def _means(
    rng: np.random.Generator,
    rows: Values,
    nearest: npt.NDArray[np.int64],
    near: Values,
    centers: Values,
    metric: Metric,
) -> Values:
    """The means of the rows of every center. A center without rows moves to a row far from its center."""
    total = len(centers)
    sizes = np.bincount(nearest, minlength=total)
    # A sparse matrix of ones sums the rows of each center in one pass over them.
    ones = np.ones(len(rows), dtype=np.float32)
    member: Any = sparse.csr_matrix((ones, (nearest, np.arange(len(rows)))), shape=(total, len(rows)))
    means: Values = np.asarray(member @ rows, dtype=np.float32)
    means /= np.maximum(sizes, 1)[:, None].astype(np.float32)
    empty = sizes == 0
    if metric == "cosine":
        means = unit(means)
        # Rows that point in opposite directions have a mean without a direction.
        empty |= ~means.any(axis=1)
    if empty.any():
        means[empty] = rows[_far(rng, rows, near, int(empty.sum()), metric)]
    return means


def _far(
    rng: np.random.Generator, rows: Values, near: Values, count: int, metric: Metric
) -> npt.NDArray[np.int64]:
    """Draw rows, the likelier the farther they are from their center; any rows if too few are away."""
    if metric == "cosine":
        weights = np.maximum(1 - near.astype(np.float64), 0)
    else:
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        weights = np.maximum(squares - 2 * near, 0)
    if np.count_nonzero(weights) < count or not np.isfinite(weights.sum()):
        return rng.choice(len(rows), count, replace=False)
    return rng.choice(len(rows), count, replace=False, p=weights / weights.sum())
