"""Which centers a row belongs to: the nearest among those of its nearest areas."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg.clustering.distance import (
    Metric,
    Rows,
    Values,
    check_dimensions,
    check_metric,
    check_rows,
    nearness,
    unit,
)
from foh_pg.errors import InputError

Positions = npt.NDArray[np.int64]

# Areas in which the home of a row is looked for, as in sql/index/write/place.sql.
NEAR_AREAS = 4

# Rows at a time: their nearness to all areas is kept in memory.
BLOCK_ROWS = 16_384

# So many largest values are sooner found one by one.
FEW = 16


def find_homes(
    rows: Rows,
    areas: Rows,
    centers: Rows,
    area_of: Positions,
    *,
    homes: int = 1,
    metric: Metric = "cosine",
    near_areas: int = NEAR_AREAS,
) -> Positions:
    """Find the `homes` nearest centers of every row, nearest first.

    Centers are compared where they lie in one of the `near_areas` nearest areas of the row, or in as many
    more as it takes to have `homes` centers. The rows that an area is near to are compared with its centers
    in one product, so nothing as large as rows times centers is ever held.

    Returns
    -------
    array (n, min(homes, centers))
        Positions of centers.

    Examples
    --------
    >>> areas, centers = np.array([[1, 0], [0, 1]]), np.array([[1, 0], [0.8, 0.6], [0, 1]])
    >>> find_homes(np.array([[0.7, 0.5], [0, 2]]), areas, centers, np.array([0, 0, 1]), homes=2)
    array([[1, 0],
           [2, 1]])
    """
    check_metric(metric)
    left, right, first = check_rows(rows), check_rows(centers, "centers"), check_rows(areas, "areas")
    if homes < 1:
        raise InputError(f"homes must be at least 1 to find any, not {homes}")
    if len(right) == 0 or len(first) == 0:
        raise InputError("there is no center to be a home")
    check_dimensions(left, right)
    check_dimensions(left, first)
    if metric == "cosine":
        left = unit(left)
    homes = min(homes, len(right))
    order = np.argsort(area_of, kind="stable")
    bounds = np.searchsorted(area_of[order], np.arange(len(first) + 1))
    ordered = right[order]
    # As many areas as surely hold enough centers: those with the fewest, taken together.
    fewest = np.cumsum(np.sort(np.diff(bounds)))
    count = min(len(first), max(near_areas, int(np.searchsorted(fewest, homes)) + 1))
    near = np.empty((len(left), count), dtype=np.int64)
    for start in range(0, len(left), BLOCK_ROWS):
        block = left[start : start + BLOCK_ROWS]
        near[start : start + len(block)] = _largest(nearness(block, first, metric), count)
    return order[_best(left, near, ordered, bounds, homes, metric)]


def _largest(values: Values, count: int) -> Positions:
    """Columns of the largest values of each row, in any order. The values are overwritten."""
    if count >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if count > FEW:
        return np.argpartition(-values, count - 1, axis=1)[:, :count]
    found = np.empty((len(values), count), dtype=np.int64)
    for place in range(count):
        found[:, place] = values.argmax(axis=1)
        np.put_along_axis(values, found[:, place, None], -np.inf, axis=1)
    return found


def _best(
    rows: Values, near: Positions, centers: Values, bounds: Positions, homes: int, metric: Metric
) -> Positions:
    """The nearest centers of rows in the areas `near` (n, areas) to them."""
    count = near.shape[1]
    pairs = np.argsort(near.reshape(-1), kind="stable")
    area = near.reshape(-1)[pairs]
    begins = np.searchsorted(area, np.arange(len(bounds)))
    best = np.full((len(rows), homes), -np.inf, dtype=np.float32)
    which = np.zeros((len(rows), homes), dtype=np.int64)
    for i in np.unique(area).tolist():
        low, high = int(bounds[i]), int(bounds[i + 1])
        if low == high:
            continue
        who = pairs[begins[i] : begins[i + 1]] // count
        values = nearness(rows[who], centers[low:high], metric)
        if homes == 1:
            top = values.argmax(axis=1)
            value = np.take_along_axis(values, top[:, None], axis=1)[:, 0]
            nearer = value > best[who, 0]
            best[who[nearer], 0], which[who[nearer], 0] = value[nearer], low + top[nearer]
            continue
        all_values = np.concatenate([best[who], values], axis=1)
        places = np.broadcast_to(np.arange(low, high), values.shape)
        all_places = np.concatenate([which[who], places], axis=1)
        kept = np.argsort(-all_values, axis=1, kind="stable")[:, :homes]
        best[who] = np.take_along_axis(all_values, kept, axis=1)
        which[who] = np.take_along_axis(all_places, kept, axis=1)
    return which
