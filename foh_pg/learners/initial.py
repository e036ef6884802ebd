"""Where a learner begins: its first projection, drawn or given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError
from foh_pg.learners.hyperplanes import random_projection


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
