"""The one encoder of learned codes, for learners and updater: a bit for each hyperplane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, pack, width

Vectors = npt.NDArray[np.float32]

# Rows that are encoded at a time, so that scores of a large table never exist at once.
CHUNK_ROWS = 8192

# Adds what the labels of some rows (a slice of all) add to the scores of these rows, in place.
Lean = Callable[[slice, npt.NDArray[Any]], None]


def chunks(rows: int) -> Iterator[slice]:
    """Pieces of as many rows as are encoded at a time."""
    return (slice(start, start + CHUNK_ROWS) for start in range(0, rows, CHUNK_ROWS))


def encode(
    rows: npt.NDArray[Any], weights: npt.NDArray[Any], bias: npt.NDArray[Any], lean: Lean | None = None
) -> CodeArray:
    """Packed codes: bit j of a row x is 1 where ``x @ weights[:, j] - bias[j] + what the labels add >= 0``.

    >>> rows = np.array([[1, 0], [0, 1]], dtype=np.float32)
    >>> encode(rows, np.eye(2, dtype=np.float32), np.array([0.5, 0])) >> 6
    array([[3],
           [1]], dtype=uint8)
    """
    packed = np.empty((len(rows), width(weights.shape[1])), dtype=np.uint8)
    for chunk in chunks(len(rows)):
        scores = rows[chunk] @ weights - bias
        if lean is not None:
            lean(chunk, scores)
        packed[chunk] = pack(scores >= 0)
    return packed


def lengths(rows: Vectors, mean: Vectors) -> Vectors:
    """The distances of rows from the mean, in single precision as the database has them."""
    centered = rows - mean
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", centered, centered)))
