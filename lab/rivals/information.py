"""Mutual information of a distance and being a neighbor, by soft histograms, and its slope."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pull_on_distances(distances: Floats, alike: npt.NDArray[np.bool_], bins: int, largest: float) -> Floats:
    """Give by how many bits mutual information falls as each distance grows by one.

    A distance between two centers of bins counts for both in proportion. Centers are 0, largest / bins, ...,
    largest. What leaves one center enters the next, so that of the derivative `log2 p + 1 / ln 2` of an
    entropy only the logarithm matters. (The authors' program has `log2 p + 1`, with the same result.)

    Parameters
    ----------
    distances : array (n,)
        Distances of the rows of the reservoir, between 0 and `largest`.
    alike : array (n,) of bool
        Which of them are neighbors.
    bins : int
        Number of bins.
    largest : float
        The largest distance possible.

    Examples
    --------
    >>> pull = pull_on_distances(np.array([1.0, 7.5]), np.array([True, False]), 4, 8.0)
    >>> pull.shape
    (2,)
    """
    position = distances * (bins / largest)
    upper = np.ceil(position).astype(np.int64)
    share = position - (upper - 1)
    # One column before the first center takes what a distance of zero gives to a lower neighbor: nothing.
    cells = np.where(alike, bins + 2, 0) + upper
    counts = np.bincount(cells, weights=1 - share, minlength=2 * bins + 4)
    counts += np.bincount(cells + 1, weights=share, minlength=2 * bins + 4)
    by_class = counts.reshape(2, bins + 2)[:, 1:]
    sizes = by_class_sizes(alike)
    densities = by_class / np.maximum(sizes, 1)[:, None]
    every = _one_plus_log(by_class.sum(axis=0) / len(distances))
    table = np.zeros((2, bins + 3))
    table[:, 1:-1] = every - _one_plus_log(densities)
    slopes = (table[:, 1:] - table[:, :-1]).reshape(-1)
    pull: Floats = slopes[cells] * (bins / largest) / len(distances)
    return pull


def by_class_sizes(alike: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the rows that are not neighbors, and those that are."""
    neighbors = np.count_nonzero(alike)
    return np.array([len(alike) - neighbors, neighbors])


def _one_plus_log(density: Floats) -> Floats:
    """`1 + log2 p`, and 1 where p is zero."""
    return 1 + np.log2(density, out=np.zeros_like(density), where=density > 0)
