"""Bits as vectors of -1 and 1: products of matrices then count equal bits, and sums tell the majority."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg.arrays.codes import CodeArray

Values = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

# Rows and groups whose signs exist at a time.
BLOCK_ROWS = 4096
BLOCK_GROUPS = 1024


def signs(bits: CodeArray) -> Values:
    """-1 for each 0 and 1 for each 1, in single precision, which is exact for sums of so few.

    Examples
    --------
    >>> signs(np.array([[0b10100000]], dtype=np.uint8))[0, :3]
    array([ 1., -1.,  1.], dtype=float32)
    """
    values: Values = np.unpackbits(bits, axis=1).astype(np.float32)
    values *= 2
    values -= 1
    return values


def nearest_bits(rows: CodeArray, centers: CodeArray) -> Positions:
    """The nearest center of every row by the Hamming distance, the first of several; all are compared."""
    right = signs(centers).T
    found = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = signs(rows[start : start + BLOCK_ROWS])
        found[start : start + len(block)] = (block @ right).argmax(axis=1)
    return found


def majority(rows: CodeArray, group: Positions, before: CodeArray) -> CodeArray:
    """For every group the bits that most of its rows have.

    Parameters
    ----------
    group : array (n,)
        The group of each row.
    before : array (groups, bytes)
        What decides where as many rows have a bit as not, and where a group has no row.

    Examples
    --------
    >>> rows = np.array([[0b11000000], [0b01100000], [0b01000000]], dtype=np.uint8)
    >>> majority(rows, np.array([0, 0, 0]), rows[:1]) == 0b01000000
    array([[ True]])
    """
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(before) + 1))
    found = np.empty_like(before)
    for low in range(0, len(before), BLOCK_GROUPS):
        high = min(low + BLOCK_GROUPS, len(before))
        mine = order[bounds[low] : bounds[high]]
        totals = 0.5 * signs(before[low:high])
        for start in range(0, len(mine), BLOCK_ROWS):
            some = mine[start : start + BLOCK_ROWS]
            ones = np.ones(len(some), dtype=np.float32)
            member = sparse.csr_matrix(
                (ones, (group[some] - low, np.arange(len(some)))), shape=(high - low, len(some))
            )
            totals += member @ signs(rows[some])
        found[low:high] = np.packbits(totals > 0, axis=1)
    return found
