"""The classifier that an index is compared with, on a split."""

from __future__ import annotations

import numpy as np

from foh_pg.quality.classifier import Classifier, Floats, surprise
from lab import relevance
from lab.protocol import Split


def fit(split: Split) -> Classifier:
    """Learn from the labelled rows of the stream."""
    rows = split.stream[split.data.sets.counts[split.stream] > 0]
    hot = split.data.sets.take(rows).multi_hot(len(split.data.label_names), np.float32)
    return Classifier.of(split.data.X[rows], hot)


def filter_by_label(asked: Floats, split: Split) -> relevance.Blocks:
    """Rank stored rows by the chance that they share a label with the query, as its classifier sees it.

    With one label per row this is: the rows of the likeliest label first, then those of the next. Inside a
    label rows are at random, as they are for a filter.
    """
    hot = split.data.sets.take(split.base).multi_hot(len(split.data.label_names), np.float32)
    return relevance.by_scores(surprise(asked), hot)
