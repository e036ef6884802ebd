"""What a ranking can be without codes: exact cosine, a supervised projection, a classifier and a filter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.bench import relevance
from foh_pg.bench.protocol import Split
from foh_pg.bench.relevance import Quality
from foh_pg.clustering import unit

# Weight of |W|^2 in the classifier, for rows of length one.
RIDGE = 1.0

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Reference:
    """A ranking that is not made of codes."""

    # The row of a table.
    name: str
    # Whether it reads the labels of the stored rows, as label-anchored codes do.
    stored_labels: bool
    # What an index must hold of each row.
    bytes_per_row: int
    seconds: float
    quality: Quality


def references(split: Split) -> Iterator[Reference]:
    """Rank by each of them in turn."""
    X, base, queries = split.data.X, split.base, split.queries
    quality = relevance.measure(relevance.by_vectors(X[queries], X[base]), split)
    yield Reference("exact cosine", False, 4 * X.shape[1], 0.0, quality)

    started = time.process_time()
    classifier = Classifier.fit(split)
    seconds = time.process_time() - started
    asked, stored = classifier.project(X[queries]), classifier.project(X[base])
    quality = relevance.measure(relevance.by_vectors(asked, stored), split)
    yield Reference("supervised projection", False, 4 * stored.shape[1], seconds, quality)

    quality = relevance.measure(filter_by_label(asked + classifier.shares, split), split)
    yield Reference("classify and filter", True, 0, seconds, quality)


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
        mean = split.data.X[rows].mean(axis=0)
        X = unit(split.data.X[rows] - mean)
        hot = split.data.sets.take(rows).multi_hot(len(split.data.label_names), np.float32)
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
