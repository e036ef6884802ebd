"""What all rivals take."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.learners.base import Learner
from foh_pg.learners.hyperplanes import initial_projection


@dataclass(eq=False, repr=False)
class Rival(Learner):
    """A learner with the parameters of all of them, see `Learner`."""

    bits: int = 64
    _: KW_ONLY
    center: bool = True
    warmup: int = 1000
    seed: int = 0


@dataclass(eq=False, repr=False)
class ProjectionRival(Rival):
    """A rival that moves a projection W from where it is told to begin."""

    _: KW_ONLY
    initial_projection: npt.ArrayLike | None = None

    def _first_projection(self) -> npt.NDArray[np.float64]:
        return initial_projection(self.rng_, self.initial_projection, self.dimensions_, self.bits)
