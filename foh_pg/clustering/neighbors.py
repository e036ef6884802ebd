"""The paper's pool: the rows nearest to each center by the Hamming distance of codes (Eq. 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from foh_pg.arrays.codes import CodeArray, check_codes, hamming_blocks, hamming_rows
from foh_pg.clustering.distance import Metric, Rows, Values, check_dimensions, check_metric, check_rows, unit
from foh_pg.clustering.homes import Positions
from foh_pg.errors import InputError

# Pairs of center and row at once.
BLOCK_PAIRS = 1 << 20


def find_neighbors(
    center_codes: CodeArray,
    center_rows: Rows,
    codes: CodeArray,
    rows: Rows,
    *,
    bits: int,
    neighbors: int,
    metric: Metric = "cosine",
) -> Positions:
    """Find the `neighbors` nearest rows of every center by code; ties by embedding, then in order.

    Returns
    -------
    array (centers, min(neighbors, n))
        Positions of rows, nearest first.
    """
    if neighbors < 1:
        raise InputError(f"neighbors must be at least 1 to find any, not {neighbors}")
    found = np.empty((len(center_codes), min(neighbors, len(codes))), dtype=np.int64)
    for start, block in _blocks(center_codes, center_rows, codes, rows, bits, metric):
        found[start : start + len(block)] = _smallest(block, found.shape[1])
    return found


def pool_distance(
    codes: CodeArray,
    rows: Rows,
    center_codes: CodeArray,
    center_rows: Rows,
    *,
    bits: int,
    metric: Metric = "cosine",
) -> Values:
    """Distance of each row to the center at the same position: there are as many rows as centers.

    The whole part is the Hamming distance; the rest, below one half, orders equal codes by embedding.

    Examples
    --------
    >>> from foh_pg.arrays.codes import pack
    >>> pool_distance(pack([[1, 1, 0]]), np.array([[0, 1]]), pack([[1, 0, 0]]), np.array([[0, 1]]), bits=3)
    array([1.], dtype=float32)
    """
    left, right = _checked(codes, rows, center_codes, center_rows, bits, metric)
    if metric == "cosine":
        distance = 1 - np.einsum("ij,ij->i", unit(left), unit(right))
    else:
        distance = np.linalg.norm(left - right, axis=1)
    return hamming_rows(codes, center_codes).astype(np.float32) + _tie(distance.astype(np.float32), metric)


def keep_nearest(centers: Positions, values: Values, keep: int) -> Positions:
    """Of the candidates of many centers keep the nearest of each.

    A center's candidates are its present members and new rows (Eq. 7); values come from `pool_distance`.

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


def _checked(
    codes: CodeArray, rows: Rows, center_codes: CodeArray, center_rows: Rows, bits: int, metric: Metric
) -> tuple[Values, Values]:
    check_metric(metric)
    sides = []
    for side, embeddings, what in ((codes, rows, "rows"), (center_codes, center_rows, "centers")):
        check_codes(side, bits)
        checked = check_rows(embeddings, what)
        if len(checked) != len(side):
            raise InputError(f"{what} have {len(side)} codes but embeddings of shape {checked.shape}")
        sides.append(checked)
    check_dimensions(*sides)
    return sides[0], sides[1]


def _blocks(
    center_codes: CodeArray, center_rows: Rows, codes: CodeArray, rows: Rows, bits: int, metric: Metric
) -> Iterator[tuple[int, Values]]:
    """Yield `(start, distances)` for consecutive blocks of centers against all rows."""
    right, left = _checked(codes, rows, center_codes, center_rows, bits, metric)
    if metric == "cosine":
        left, right = unit(left), unit(right)
    squares = np.einsum("ij,ij->i", left, left), np.einsum("ij,ij->i", right, right)
    for start, hamming in hamming_blocks(center_codes, codes, BLOCK_PAIRS):
        end = start + len(hamming)
        distance: Values = left[start:end] @ right.T
        if metric == "cosine":
            np.subtract(1, distance, out=distance)
        else:
            distance *= -2
            distance += squares[0][start:end, None]
            distance += squares[1]
            np.sqrt(np.maximum(distance, 0, out=distance), out=distance)
        yield start, hamming.astype(np.float32) + _tie(distance, metric)


def _tie(distance: Values, metric: Metric) -> Values:
    """A distance brought below one half, in the same order."""
    if metric == "cosine":
        return np.asarray(np.clip(distance, 0, 2) / np.float32(4.001))
    return np.asarray(np.float32(0.499) * distance / (1 + distance))


def _smallest(block: Values, count: int) -> Positions:
    """Columns of the smallest values of each row, ascending, ties in column order."""
    if count < block.shape[1]:
        # Among values equal to the last one that fits, the columns decide.
        limit = np.partition(block, count - 1, axis=1)[:, count - 1 : count]
        block = np.where(block <= limit, block, np.inf)
    return np.asarray(np.argsort(block, axis=1, kind="stable")[:, :count], dtype=np.int64)
