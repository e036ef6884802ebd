"""Learners that move W by one outer product per row, run in blocks of rows.

Such a learner sees scores `W'x`, decides on a step `s` and sets `W <- W + x s'`. Within a block W need not be
touched: the scores of a later row change by its inner products with the rows before it. A row then costs
`block * bits` instead of `2 * dimensions * bits` operations, and the rest becomes three matrix products per
block. The result is that of the plain loop up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_ROWS = 64

Floats = npt.NDArray[np.float64]
Step = Callable[[int, Floats], Floats | None]


def run(projection: Floats, rows: npt.NDArray[np.floating[Any]], step: Step) -> None:
    """Pass over rows in order and move `projection` in place.

    Parameters
    ----------
    projection : array (d, k)
        W, overwritten.
    rows : array (n, d)
        The rows.
    step : function of (position, scores)
        Gives `s` for the row at that position, or None where W stays as it is.

    Examples
    --------
    >>> W = np.zeros((2, 1))
    >>> run(W, np.array([[1.0, 0.0], [1.0, 1.0]]), lambda i, scores: scores + 1)
    >>> W
    array([[3.],
           [2.]])
    """
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS]
        scores = block @ projection
        products = block @ block.T
        steps = np.zeros_like(scores)
        for i in range(len(block)):
            if i:
                scores[i] += products[i, :i] @ steps[:i]
            moved = step(start + i, scores[i])
            if moved is not None:
                steps[i] = moved
        projection += block.T @ steps
