"""Hadamard matrices: rows of signs, each pair of them orthogonal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError


def hadamard_order(size: int) -> int:
    """Smallest power of two that is at least `size`.

    Examples
    --------
    >>> hadamard_order(48), hadamard_order(64)
    (64, 64)
    """
    return 1 << max(0, size - 1).bit_length()


def hadamard_rows(rows: npt.ArrayLike, order: int) -> npt.NDArray[np.int8]:
    """Rows of Sylvester's matrix of that order, without making the matrix.

    Entry (i, j) is -1 where the numbers i and j have an odd number of binary ones in common.

    Examples
    --------
    >>> hadamard_rows([0, 1, 3], 4)
    array([[ 1,  1,  1,  1],
           [ 1, -1,  1, -1],
           [ 1, -1, -1,  1]], dtype=int8)
    """
    if order != hadamard_order(order):
        raise InputError(f"the order of a Hadamard matrix must be a power of two here, not {order}")
    common = np.asarray(rows, dtype=np.int64)[:, None] & np.arange(order, dtype=np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        common ^= common >> shift
    return (1 - 2 * (common & 1)).astype(np.int8)
