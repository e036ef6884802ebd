"""What "nearest" means in the pool: the share of different bits plus the distance of the embeddings.

Learned codes tie massively, and ties go by the embedding: the distance of a row and a center is
`hamming / bits + blend * distance`, with the distance of pgvector's operator for the metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray, check_codes, hamming_blocks, hamming_rows
from foh_pg.errors import InputError

Metric = Literal["cosine", "l2", "ip"]
Rows = npt.NDArray[np.floating[Any]]
Values = npt.NDArray[np.float32]

# Pairs of row and center at once; with it the products are large enough for BLAS and small enough for the
# cache.
BLOCK_PAIRS = 1 << 20


def check_side(codes: CodeArray, rows: Rows, bits: int, what: str) -> Rows:
    """Check that codes and embeddings belong together; return the embeddings in single precision."""
    check_codes(codes, bits)
    array = np.asarray(rows)
    if array.ndim != 2 or len(array) != len(codes):
        raise InputError(f"{what} have {len(codes)} codes but embeddings of shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float32)


def check_metric(metric: str) -> None:
    """Raise InputError unless `metric` is one of ours."""
    if metric not in get_args(Metric):
        raise InputError(f"metric must be cosine, l2 or ip, not {metric!r}")


def blend_blocks(
    codes: CodeArray,
    rows: Rows,
    center_codes: CodeArray,
    center_rows: Rows,
    *,
    bits: int,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> Iterator[tuple[int, Values]]:
    """Yield `(start, distances)` for consecutive blocks of rows against all centers."""
    check_metric(metric)
    left = check_side(codes, rows, bits, "rows")
    right = check_side(center_codes, center_rows, bits, "centers")
    if left.shape[1] != right.shape[1]:
        raise InputError(f"rows have {left.shape[1]} dimensions, centers {right.shape[1]}")
    if metric == "cosine":
        right = _unit(right)
    for start, hamming in hamming_blocks(codes, center_codes, BLOCK_PAIRS):
        block = hamming.astype(np.float32)
        block /= np.float32(bits)
        if blend:
            block += np.float32(blend) * _distances(left[start : start + len(block)], right, metric)
        yield start, block


def blend_rows(
    codes: CodeArray,
    rows: Rows,
    center_codes: CodeArray,
    center_rows: Rows,
    *,
    bits: int,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> Values:
    """Distance of each row to the center in the same place: both sides have equally many.

    Examples
    --------
    >>> from foh_pg.codes import pack
    >>> code = pack([[1, 1, 0, 0]])
    >>> blend_rows(code, np.ones((1, 2)), pack([[1, 0, 0, 0]]), np.ones((1, 2)), bits=4, metric="l2")
    array([0.25], dtype=float32)
    """
    check_metric(metric)
    left = check_side(codes, rows, bits, "rows")
    right = check_side(center_codes, center_rows, bits, "centers")
    values: Values = hamming_rows(codes, center_codes).astype(np.float32) / np.float32(bits)
    if not blend:
        return values
    if metric == "l2":
        distance = np.linalg.norm(left - right, axis=1)
    elif metric == "ip":
        distance = -np.einsum("ij,ij->i", left, right)
    else:
        distance = 1 - np.einsum("ij,ij->i", _unit(left), _unit(right))
    values += np.float32(blend) * distance.astype(np.float32)
    return values


def _unit(rows: Rows) -> Rows:
    """Scale to length one; a row of zeros has no direction and is at distance 1 from everything."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled = np.zeros_like(rows)
    np.divide(rows, lengths, out=scaled, where=lengths > 0)
    return scaled


def _distances(rows: Rows, centers: Rows, metric: Metric) -> Values:
    """Distances of embeddings; for cosine the centers come with length one."""
    if metric == "cosine":
        rows = _unit(rows)
    products: Values = rows @ centers.T
    if metric == "cosine":
        np.subtract(1, products, out=products)
    elif metric == "ip":
        np.negative(products, out=products)
    else:
        products *= -2
        products += np.einsum("ij,ij->i", rows, rows)[:, None]
        products += np.einsum("ij,ij->i", centers, centers)
        np.sqrt(np.maximum(products, 0, out=products), out=products)
    return products
