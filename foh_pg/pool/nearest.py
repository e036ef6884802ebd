"""The nearest center of many rows: the same as `find_homes` with one home, by products of matrices alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray
from foh_pg.errors import InputError
from foh_pg.pool.distance import Metric, Rows, check_metric, check_side

# Rows times centers at once: large enough for BLAS, small enough to be read again from the cache.
BLOCK_PAIRS = 1 << 22


def nearest_center(
    codes: CodeArray,
    rows: Rows,
    center_codes: CodeArray,
    center_rows: Rows,
    *,
    bits: int,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> npt.NDArray[np.int64]:
    """Find the center with the smallest `hamming / bits + blend * distance` for every row.

    With codes as signs -1 and +1 the Hamming distance is a product, `(bits - b . c) / 2`. So codes and
    embeddings stand side by side in one matrix, and one product of two such matrices is all the work. What is
    the same for all centers is left out.

    Examples
    --------
    >>> from foh_pg.codes import pack
    >>> center_codes, center_rows = pack([[0, 0], [1, 1], [0, 0]]), np.array([[1, 0], [0, 1], [0.9, 0.1]])
    >>> nearest_center(pack([[0, 0], [1, 1]]), np.array([[0.9, 0.1], [0, 1]]), center_codes, center_rows,
    ...                bits=2)
    array([2, 1])
    """
    check_metric(metric)
    left = check_side(codes, rows, bits, "rows")
    right = check_side(center_codes, center_rows, bits, "centers")
    if len(right) == 0:
        raise InputError("there is no center to be a home")
    if left.shape[1] != right.shape[1]:
        raise InputError(f"rows have {left.shape[1]} dimensions, centers {right.shape[1]}")
    centers = np.concatenate([_signs(center_codes, bits), _side(right, metric)], axis=1).T
    found = np.empty(len(codes), dtype=np.int64)
    step = max(1, BLOCK_PAIRS // len(right))
    for start in range(0, len(codes), step):
        part = slice(start, start + step)
        near = _nearness(_signs(codes[part], bits), left[part], centers, right, bits, metric, blend)
        found[part] = near.argmax(axis=1)
    return found


def _nearness(
    signs: npt.NDArray[np.float32],
    rows: Rows,
    centers: npt.NDArray[Any],
    center_rows: Rows,
    bits: int,
    metric: Metric,
    blend: float,
) -> npt.NDArray[np.float32]:
    """Minus the distance, up to what is the same for all centers."""
    signs /= np.float32(2 * bits)
    if metric != "l2":
        # A row of zeros has no direction: it is at one distance from all.
        side = _side(rows, metric) * np.float32(blend)
        near: npt.NDArray[np.float32] = np.concatenate([signs, side], axis=1) @ centers
        return near
    near = signs @ centers[:bits]
    squares = rows @ (np.float32(-2) * center_rows.T)
    squares += np.einsum("ij,ij->i", rows, rows)[:, None]
    squares += np.einsum("ij,ij->i", center_rows, center_rows)
    np.sqrt(np.maximum(squares, 0, out=squares), out=squares)
    near -= np.float32(blend) * squares
    return near


def _signs(codes: CodeArray, bits: int) -> npt.NDArray[np.float32]:
    signs = np.unpackbits(codes, axis=1, count=bits).astype(np.float32)
    signs *= 2
    signs -= 1
    return signs


def _side(rows: Rows, metric: Metric) -> npt.NDArray[np.float32]:
    side = np.asarray(rows, dtype=np.float32)
    if metric != "cosine":
        return side
    lengths = np.linalg.norm(side, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = np.divide(side, lengths, out=np.zeros_like(side), where=lengths > 0)
    return unit
