"""What a ranking can be without codes: exact cosine, a supervised projection, a classifier and a filter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from lab import relevance
from lab.classifying import filter_by_label, fit
from lab.protocol import Split
from lab.relevance import Quality


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
    classifier = fit(split)
    seconds = time.process_time() - started
    asked, stored = classifier.project(X[queries]), classifier.project(X[base])
    quality = relevance.measure(relevance.by_vectors(asked, stored), split)
    yield Reference("supervised projection", False, 4 * stored.shape[1], seconds, quality)

    quality = relevance.measure(filter_by_label(asked + classifier.shares, split), split)
    yield Reference("classify and filter", True, 0, seconds, quality)
