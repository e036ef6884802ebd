"""Random hyperplanes: what an index has before any training, and what every learner must beat."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.base import Learner
from foh_pg.learners.rows import FloatArray, KeyArray


def random_projection(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """Draw a Gaussian matrix whose columns have length one."""
    drawn = rng.standard_normal((rows, columns))
    drawn /= np.linalg.norm(drawn, axis=0)
    return drawn


def initial_projection(
    rng: np.random.Generator, given: npt.ArrayLike | None, dimensions: int, bits: int
) -> npt.NDArray[np.float64]:
    """Draw Gaussian columns of length one, or copy the projection the user gave.

    The generator moves on only where it draws.

    >>> import numpy as np
    >>> initial_projection(np.random.default_rng(0), [[1.0, 0.0], [0.0, 1.0]], 2, 2)
    array([[1., 0.],
           [0., 1.]])
    """
    if given is None:
        return random_projection(rng, dimensions, bits)
    projection = np.array(given, dtype=np.float64)
    if projection.shape != (dimensions, bits) or not np.isfinite(projection).all():
        raise InputError(
            f"initial_projection must be a finite array of shape ({dimensions}, {bits}), its shape is "
            f"{projection.shape}"
        )
    return projection


@dataclass(eq=False, repr=False)
class RandomHyperplanes(Learner):
    """Hyperplanes through the mean of the data, drawn once and never moved.

    Parameters
    ----------
    bits, center, warmup, seed :
        As for all learners, see `Learner`.

    >>> import numpy as np
    >>> RandomHyperplanes(bits=16).partial_fit(np.eye(4)).encode(np.eye(4)).shape
    (4, 2)
    """

    name = "random"
    supervised = False

    bits: int = 64
    _: KW_ONLY
    center: bool = True
    warmup: int = 1000
    seed: int = 0

    def _restart(self) -> None:
        self._serve(random_projection(self.rng_, self.dimensions_, self.bits))

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        self._serve(self.projection_)
