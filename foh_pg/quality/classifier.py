"""A plain classifier of queries: what an index must be compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.clustering import unit

# Weight of |W|^2 in the classifier, for rows of length one.
RIDGE = 1.0

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Classifier:
    """Ridge regression of labels on rows, centered and scaled to length one."""

    mean: Floats
    weights: Floats
    shares: Floats

    @classmethod
    def of(cls, rows: Floats, hot: Floats) -> Classifier:
        """Learn from rows and their labels, multi-hot."""
        mean = rows.mean(axis=0)
        X = unit(rows - mean)
        shares = hot.mean(axis=0)
        gram = (X.T @ X).astype(np.float64)
        gram[np.diag_indices_from(gram)] += RIDGE
        weights = np.linalg.solve(gram, (X.T @ (hot - shares)).astype(np.float64))
        return cls(mean, weights.astype(np.float32), shares)

    def project(self, X: Floats) -> Floats:
        """Score every label, relative to how frequent it is."""
        scored: Floats = unit(X - self.mean) @ self.weights
        return scored


def surprise(chances: Floats) -> Floats:
    """Chances of labels as numbers that add up: a row with a greater sum is likelier to have one of them."""
    return np.asarray(-np.log1p(-np.clip(chances, 1e-6, 1 - 1e-6)))
