"""What the authors' own programs computed on handwritten digits: trimmed arrays in the folder golden."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from foh_pg.arrays.codes import hamming
from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Labels, Vocabulary

FOLDER = Path(__file__).parents[1] / "lab" / "golden"


@dataclass(frozen=True)
class Digits:
    train: np.ndarray
    labels: np.ndarray
    queries: np.ndarray
    query_labels: np.ndarray

    def mean_average_precision(self, learner):
        """The authors' measure: ties in row order, over the whole base."""
        distances = hamming(learner.encode(self.queries), learner.encode(self.train))
        total = 0.0
        for row, label in zip(distances, self.query_labels, strict=True):
            relevant = self.labels[np.argsort(row, kind="stable")] == label
            precision = np.cumsum(relevant) / np.arange(1, len(relevant) + 1)
            total += precision[relevant].mean()
        return total / len(distances)


@cache
def digits():
    """Rows centered by the mean of all and scaled to length one, as the authors' programs got them."""
    with np.load(FOLDER / "digits.npz") as file:
        rows = file["pixels"] - file["pixels"].mean(axis=0, dtype=float)
        rows /= np.sqrt((rows**2).sum(axis=1))[:, None]
        n, labels = int(file["train"]), file["labels"].astype(int)
    return Digits(rows[:n], labels[:n], rows[n:], labels[n:])


@cache
def load(name):
    with np.load(FOLDER / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def label_sets(queries: Labels, base: Labels) -> tuple[LabelSets, LabelSets]:
    """The labels of queries and of a base, by the same numbers."""
    names = Vocabulary().read(base)[1].read(queries)[1]
    return names.find(queries), names.find(base)
