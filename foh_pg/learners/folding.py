"""Many dimensions folded into fewer, so that what a learner sums over its rows stays small.

A row of 16 000 dimensions would need sums of 16 000 x 16 000 numbers. Each dimension is given a sign and one
of FOLDED places at random, and the numbers of a place are added up. That keeps lengths and inner products in
expectation. What is learned in the folded space is, unfolded, an ordinary hash function of the row itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.learners.rows import FloatArray

# Rows with more dimensions are folded into this many. The sums then take 128 MB.
FOLDED = 4096


@dataclass
class Folding:
    """Which dimensions share a place, and with which sign.

    >>> folding = Folding.draw(5, 2, seed=0)
    >>> row, weights = np.arange(5.0)[None], np.array([[1.0], [2.0]])
    >>> bool(np.allclose(folding.fold(row) @ weights, row @ folding.unfold(weights)))
    True
    """

    # Shape (d,). The dimensions, in the order in which they fill the places, round after round.
    order: npt.NDArray[np.int64]
    # Shape (d,). The sign of each of them, in the same order.
    signs: npt.NDArray[np.int8]
    places: int

    @classmethod
    def draw(cls, dimensions: int, places: int, seed: int) -> Folding:
        """Draw places and signs; every place is given to as many dimensions as any other, or to one fewer."""
        rng = np.random.Generator(np.random.PCG64([seed, dimensions, places]))
        order = rng.permutation(dimensions)
        return cls(order, rng.choice(np.array([-1, 1], dtype=np.int8), dimensions), places)

    def fold(self, rows: FloatArray) -> FloatArray:
        """Give rows (n, d) as rows (n, places)."""
        folded: FloatArray = np.zeros((len(rows), self.places), dtype=rows.dtype)
        for start in range(0, len(self.order), self.places):
            part = self.order[start : start + self.places]
            folded[:, : len(part)] += rows[:, part] * self.signs[start : start + self.places]
        return folded

    def unfold(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Give hash functions of folded rows (places, k) as those of the rows themselves (d, k)."""
        unfolded = np.empty((len(self.order), weights.shape[1]))
        places = np.arange(len(self.order)) % self.places
        unfolded[self.order] = weights[places] * self.signs[:, None]
        return unfolded
