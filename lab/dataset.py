"""Rows with labels, in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Labels
from foh_pg.errors import InputError


@dataclass(frozen=True)
class Dataset:
    """Rows and their labels."""

    # What reports call it.
    name: str
    # Shape (n, d) of float32. The rows.
    X: npt.NDArray[np.float32]
    # Label ids of each row.
    sets: LabelSets
    # What the ids stand for.
    label_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or len(self.X) != len(self.sets):
            raise InputError(f"{self.name}: {len(self.sets)} label sets for rows of shape {self.X.shape}")
        if not np.isfinite(self.X).all():
            raise InputError(f"{self.name}: rows must be finite numbers")
        if not self.sets.counts.any():
            raise InputError(f"{self.name}: no row has a label")

    @property
    def multi_label(self) -> bool:
        """Whether any row has more than one label."""
        return bool((self.sets.counts > 1).any())

    def labels(self, rows: npt.NDArray[np.int64]) -> Labels:
        """Labels of some rows as learners read them: names where no row has two, else multi-hot."""
        chosen = self.sets.take(rows)
        if self.multi_label:
            return chosen.multi_hot(len(self.label_names))
        if (chosen.counts == 1).all():
            return np.array(self.label_names)[chosen.ids]
        return [[self.label_names[i] for i in chosen.row(row)] for row in range(len(chosen))]

    def without_labels(self, hidden: npt.NDArray[np.bool_]) -> Dataset:
        """Return the data set with the labels of some rows forgotten."""
        sets = self.sets
        kept = np.repeat(~hidden, sets.counts)
        offsets = np.concatenate([[0], np.cumsum(np.where(hidden, 0, sets.counts))])
        return replace(self, sets=LabelSets(sets.ids[kept], offsets))
