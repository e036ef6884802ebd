"""The existing rows a learner still looks at: a uniform sample of the whole stream, or a recent one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, width
from foh_pg.arrays.labels import LabelSets
from foh_pg.learners.rows import KeyArray, join_keys


@dataclass
class Reservoir:
    """A sample of past rows, as keys, label ids and codes; oldest first, never their vectors.

    Every row draws a priority once, the logarithm of an exponential variable, and the rows with the smallest
    priorities stay. That is a uniform sample without replacement. A row of stage t with weight `forget **
    -t` has its logarithm lowered by `t * log(1 / forget)`: then the sample leans to the recent rows as the
    sums do.
    """

    # Shape (n,). What the caller knows the rows by.
    keys: KeyArray
    # Their label ids.
    sets: LabelSets
    # Shape (n, bytes) of uint8. Their packed codes, as the learner last set them.
    codes: CodeArray
    # Shape (n,). Smaller ones stay longer.
    priorities: npt.NDArray[np.float64]
    # The smallest priority ever turned away. Rows above it get no place even when rows were deleted;
    # otherwise the sample would favor rows that came after a deletion.
    limit: float = np.inf

    @classmethod
    def none(cls, bits: int) -> Reservoir:
        """Start empty."""
        return cls(
            np.zeros(0, dtype=np.int64),
            LabelSets.empty(),
            np.zeros((0, width(bits)), dtype=np.uint8),
            np.zeros(0),
        )

    def __len__(self) -> int:
        return len(self.keys)

    def add(
        self,
        keys: KeyArray,
        sets: LabelSets,
        codes: CodeArray,
        priorities: npt.NDArray[np.float64],
        size: int | None,
    ) -> Reservoir:
        """Return the reservoir after more rows, at most `size` of them (None for all)."""
        joined = np.concatenate([self.priorities, priorities])
        kept = np.flatnonzero(joined < self.limit)
        limit = self.limit
        if size is not None and len(kept) > size:
            order = np.argsort(joined[kept], kind="stable")
            limit = float(joined[kept[order[size]]])
            kept = np.sort(kept[order[:size]])
        everything = Reservoir(
            join_keys(self.keys, keys),
            self.sets.append(sets),
            np.concatenate([self.codes, codes]),
            joined,
            limit,
        )
        return everything if len(kept) == len(joined) else everything.take(kept)

    def take(self, rows: npt.NDArray[Any]) -> Reservoir:
        """Return the reservoir of the given rows only."""
        return Reservoir(
            self.keys[rows], self.sets.take(rows), self.codes[rows], self.priorities[rows], self.limit
        )

    def stand_for(self, weight: float) -> Reservoir:
        """Return the reservoir of a stream `weight` times as long, of which the rows so far are a sample."""
        return self.shifted(-float(np.log(weight)))

    def shifted(self, shift: float) -> Reservoir:
        """Return the same rows with other priorities: what rows to come are compared with."""
        return replace(self, priorities=self.priorities + shift, limit=self.limit + shift)

    def without(self, keys: KeyArray) -> Reservoir:
        """Return the reservoir without the rows of these keys."""
        return self.take(np.flatnonzero(~np.isin(self.keys, keys)))


def draw_priorities(
    rng: np.random.Generator, rows: int, stage: int = 0, forget: float = 1.0
) -> npt.NDArray[np.float64]:
    """Draw the priorities of `rows` rows that arrive at a stage."""
    drawn: npt.NDArray[np.float64] = np.log(rng.standard_exponential(rows))
    return drawn + stage * float(np.log(forget))
