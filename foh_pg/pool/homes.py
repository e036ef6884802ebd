"""Which centers a row belongs to, and which rows are nearest to a center."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray
from foh_pg.errors import InputError
from foh_pg.pool.distance import Metric, Rows, Values, blend_blocks

Positions = npt.NDArray[np.int64]


def find_homes(
    codes: CodeArray,
    rows: Rows,
    center_codes: CodeArray,
    center_rows: Rows,
    *,
    bits: int,
    homes: int = 1,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> Positions:
    """Find the `homes` nearest centers of every row, nearest first.

    The same call with `homes=probes` says which lists a query reads. Centers at equal distance are taken in
    order.

    Returns
    -------
    array (n, min(homes, centers))
        Positions of centers.

    Examples
    --------
    >>> from foh_pg.codes import pack
    >>> center_codes, center_rows = pack([[0, 0], [1, 1], [0, 0]]), np.array([[1, 0], [0, 1], [0.9, 0.1]])
    >>> find_homes(pack([[0, 0], [1, 1]]), np.array([[0.9, 0.1], [0, 1]]), center_codes, center_rows, bits=2)
    array([[2],
           [1]])
    """
    if homes < 1:
        raise InputError(f"homes must be at least 1 to find any, not {homes}")
    if len(center_codes) == 0:
        raise InputError("there is no center to be a home")
    found = np.empty((len(codes), min(homes, len(center_codes))), dtype=np.int64)
    for start, block in blend_blocks(
        codes, rows, center_codes, center_rows, bits=bits, metric=metric, blend=blend
    ):
        found[start : start + len(block)] = _smallest(block, found.shape[1])
    return found


def find_neighbors(
    center_codes: CodeArray,
    center_rows: Rows,
    codes: CodeArray,
    rows: Rows,
    *,
    bits: int,
    neighbors: int,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> Positions:
    """Find the `neighbors` nearest rows of every center: the paper's pool (Eq. 7 and 8, with `blend=0`).

    Returns
    -------
    array (centers, min(neighbors, n))
        Positions of rows, nearest first; rows at equal distance are taken in order.
    """
    if neighbors < 1:
        raise InputError(f"neighbors must be at least 1 to find any, not {neighbors}")
    found = np.empty((len(center_codes), min(neighbors, len(codes))), dtype=np.int64)
    for start, block in blend_blocks(
        center_codes, center_rows, codes, rows, bits=bits, metric=metric, blend=blend
    ):
        found[start : start + len(block)] = _smallest(block, found.shape[1])
    return found


def keep_nearest(centers: Positions, values: Values, keep: int) -> Positions:
    """Of the candidates of many centers keep the nearest of each.

    A center's candidates are its present members and new rows (Eq. 7); values come from `blend_rows`.

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


def _smallest(block: Values, count: int) -> Positions:
    """Columns of the smallest values of each row, ascending, ties in column order."""
    if count == 1:
        return np.asarray(block.argmin(axis=1)[:, None], dtype=np.int64)
    if count < block.shape[1]:
        # Whatever equals the last value that fits may be among the first by its column.
        limit = np.partition(block, count - 1, axis=1)[:, count - 1 : count]
        block = np.where(block <= limit, block, np.inf)
    return np.asarray(np.argsort(block, axis=1, kind="stable")[:, :count], dtype=np.int64)
