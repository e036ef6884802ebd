"""What place in a table the rows have of which a part of the table is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlog1py, xlogy  # type: ignore[import-untyped]

from foh_pg.updater.gathering import KEPT

# The places of rows in the whole table that are told apart: each of the first, then steps that grow.
PLACES_EXACT = 60
PLACES_STEP = 1.05
PLACES_STEPS = 120
# After so many rounds the places change little, and are still smooth.
ROUNDS = 60

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Places:
    """How many rows of a table come before one of which so many come before it in a part of the table.

    Where a quarter of the rows is here, a row before which are two may well be the second or the twentieth of
    the table. That alone would say of every place that it is more uncertain than the places are: most rows
    that are wanted are among the first. So the places that rows have in the table are estimated first, as the
    likeliest that explain all those that are seen here, in rounds of expectation and maximization.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        rough = np.round(PLACES_EXACT * PLACES_STEP ** np.arange(PLACES_STEPS))
        places = np.unique(np.append(np.arange(PLACES_EXACT), rough).astype(np.int64))
        self.places = places[places <= max(PLACES_EXACT, KEPT / share)]
        self.chances = binomial(np.arange(KEPT)[:, None], self.places[None], share)

    def within(self, before: Ints, weights: Floats, bounds: Ints) -> Floats:
        """How likely fewer than each bound come before each row: an array (rows, bounds)."""
        if self.share >= 1 or not weights.sum():
            return np.asarray(before[:, None] < bounds, dtype=np.float64)
        seen, at = np.unique(before, return_inverse=True)
        # The least number keeps a row in its place that none of these places explains.
        chances = self.chances[seen] + np.finfo(np.float64).tiny
        counts = np.bincount(at, weights=weights) / weights.sum()
        places = np.full(len(self.places), 1 / len(self.places))
        for _ in range(ROUNDS):
            places *= (counts / (chances @ places)) @ chances
        of_seen = chances * places
        of_seen /= of_seen.sum(axis=1, keepdims=True)
        return np.asarray((of_seen @ (self.places[:, None] < bounds))[at])


def binomial(count: Ints, of: Ints | int, share: float) -> Floats:
    """How likely so many of so many rows are in a part that is that share of the table.

    scipy.stats has the same function, and takes longer to import than everything else of an updater.
    """
    others = np.maximum(of - count, 0)
    logarithm = gammaln(of + 1.0) - gammaln(count + 1.0) - gammaln(others + 1.0)
    logarithm += xlogy(count, share) + xlog1py(others, -share)
    return np.asarray(np.where(count <= of, np.exp(logarithm), 0.0))
