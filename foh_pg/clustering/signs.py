"""Bits as vectors of -1 and 1: products of matrices then count equal bits, and sums tell the majority."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg.arrays.codes import CodeArray

Values = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

# Rows whose signs exist at a time.
BLOCK_ROWS = 4096


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
    totals = 0.5 * signs(before)
    for start in range(0, len(rows), BLOCK_ROWS):
        of = group[start : start + BLOCK_ROWS]
        ones = np.ones(len(of), dtype=np.float32)
        member = sparse.csr_matrix((ones, (of, np.arange(len(of)))), shape=(len(before), len(of)))
        totals += member @ signs(rows[start : start + BLOCK_ROWS])
    return np.packbits(totals > 0, axis=1)
