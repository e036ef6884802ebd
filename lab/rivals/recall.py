"""Past rows kept with their vectors: a uniform sample of the stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.learners.rows import FloatArray, KeyArray, join_keys


@dataclass
class Recall:
    """A sample of past rows with vectors and labels.

    Every row draws a number once, and the rows with the smallest numbers stay.
    """

    # Shape (n, d). The prepared rows.
    rows: FloatArray
    # Shape (n, labels). Their labels, multi-hot.
    hot: npt.NDArray[np.float32]
    # Shape (n,). What the caller knows them by.
    keys: KeyArray
    # Shape (n,). The numbers drawn.
    draws: npt.NDArray[np.float64]

    @classmethod
    def none(cls, dimensions: int) -> Recall:
        """Start empty."""
        return cls(
            np.zeros((0, dimensions)),
            np.zeros((0, 0), dtype=np.float32),
            np.zeros(0, dtype=np.int64),
            np.zeros(0),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def add_labels(self, labels: int) -> None:
        """Widen the table of labels to that many columns."""
        missing = labels - self.hot.shape[1]
        if missing > 0:
            self.hot = np.pad(self.hot, ((0, 0), (0, missing)))

    def offer(
        self, size: int, row: FloatArray, hot: npt.NDArray[np.float32], key: KeyArray, draw: float
    ) -> int | None:
        """Keep a row if there is room or its number is small; return its place."""
        if len(self) < size:
            self.rows = np.concatenate([self.rows, row[None]])
            self.hot = np.concatenate([self.hot, hot[None]])
            self.keys = join_keys(self.keys, key)
            self.draws = np.append(self.draws, draw)
            return len(self) - 1
        place = int(self.draws.argmax())
        if draw >= self.draws[place]:
            return None
        # Keys of text may be longer than those that came before.
        self.keys = self.keys.astype(join_keys(self.keys[:1], key).dtype, copy=False)
        self.rows[place], self.hot[place], self.keys[place], self.draws[place] = row, hot, key[0], draw
        return place

    def without(self, keys: KeyArray) -> Recall:
        """Return the sample without the rows of these keys."""
        kept = ~np.isin(self.keys, keys)
        return Recall(self.rows[kept], self.hot[kept], self.keys[kept], self.draws[kept])
