"""The paper's pool: of the rows that were shown to a center, those nearest to it (Eq. 7 and 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.clustering.signs import Positions


def keep_nearest(centers: Positions, values: npt.NDArray[Any], keep: int) -> Positions:
    """Of the candidates of many centers keep the nearest of each.

    A center's candidates are its present members and new rows.

    Parameters
    ----------
    centers : array (n,)
        The center of each candidate.
    values : array (n,)
        Its distance to that center.
    keep : int
        How many to keep of each center.

    Returns
    -------
    array
        Positions of the kept candidates, by center and then by distance; ties in the order given.

    Examples
    --------
    >>> keep_nearest(np.array([1, 0, 1, 1]), np.array([0.5, 0.1, 0.2, 0.9], dtype=np.float32), 2)
    array([1, 2, 0])
    """
    order = np.lexsort((values, centers))
    ordered = centers[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    sizes = np.diff(np.append(begins, len(ordered)))
    rank = np.arange(len(ordered)) - np.repeat(begins, sizes)
    return np.asarray(order[rank < keep], dtype=np.int64)
