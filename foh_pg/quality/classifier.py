"""A plain classifier of queries, and the rankings that it makes: what an index must be compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.clustering import unit
from foh_pg.quality import relevance
from foh_pg.quality.protocol import Split

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
    def fit(cls, split: Split) -> Classifier:
        """Learn from the labelled rows of the stream."""
        rows = split.stream[split.data.sets.counts[split.stream] > 0]
        hot = split.data.sets.take(rows).multi_hot(len(split.data.label_names), np.float32)
        return cls.of(split.data.X[rows], hot)

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


def filter_by_label(asked: Floats, split: Split) -> relevance.Blocks:
    """Rank stored rows by the chance that they share a label with the query, as its classifier sees it.

    With one label per row this is: the rows of the likeliest label first, then those of the next. Inside a
    label rows are at random, as they are for a filter.
    """
    surprise = -np.log1p(-np.clip(asked, 1e-6, 1 - 1e-6))
    hot = split.data.sets.take(split.base).multi_hot(len(split.data.label_names), np.float32)
    return relevance.by_scores(surprise, hot)


def nearest_of_label(asked: Floats, split: Split) -> relevance.Blocks:
    """Rank stored rows with the query's likeliest label by their distance, then all others by theirs."""
    X, hot = split.data.X, split.data.sets.take(split.base).multi_hot(len(split.data.label_names), bool)
    likeliest = asked.argmax(axis=1)
    for start, distances in relevance.by_vectors(X[split.queries], X[split.base]):
        has = hot[:, likeliest[start : start + len(distances)]].T
        # Cosine distances differ by two at the most.
        yield start, np.where(has, distances, distances + 2)
