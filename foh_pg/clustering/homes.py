"""Which centers a row belongs to: the nearest by bits among those of its nearest areas.

A search looks for its centers in the same way (sql/index/search/nearest_centers.sql). Distances are whole
numbers here and there, and of equal ones the first in order counts: so the home of a row is the list that a
search by the vector of the row reads first.
"""

from __future__ import annotations

import numpy as np

from foh_pg.arrays.codes import CodeArray, check_codes, smallest
from foh_pg.clustering.signs import Positions, Values, signs
from foh_pg.errors import InputError

# Areas in which the home of a row is looked for; a search looks into one more for every four probes.
NEAR_AREAS = 8
PROBES_PER_AREA = 4

# Rows at a time: for each of these blocks the centers of all areas that are near to any row are unpacked.
BLOCK_ROWS = 16_384

# So many largest values are sooner found one by one.
FEW = 16


def near_areas(probes: int) -> int:
    """How many areas are looked into for the nearest `probes` centers.

    Examples
    --------
    >>> [near_areas(probes) for probes in (1, 10, 32)]
    [8, 10, 16]
    """
    return NEAR_AREAS + probes // PROBES_PER_AREA


def find_homes(
    rows: CodeArray,
    areas: CodeArray,
    centers: CodeArray,
    area_of: Positions,
    *,
    homes: int = 1,
    looked: int = NEAR_AREAS,
) -> Positions:
    """Find the `homes` nearest centers of every row, nearest first.

    Parameters
    ----------
    rows, areas, centers : arrays (., bytes)
        Geometry bits.
    area_of : array (u,)
        The area of each center.
    looked : int
        How many areas of a row are looked into, or as many more as it takes to have `homes` centers.

    Returns
    -------
    array (n, min(homes, centers))
        Positions of centers.

    Examples
    --------
    >>> centers = np.array([[0b11110000], [0b11000000], [0b00001111]], dtype=np.uint8)
    >>> rows = np.array([[0b11010000], [0b00001110]], dtype=np.uint8)
    >>> find_homes(rows, centers[[0, 2]], centers, np.array([0, 0, 1]), homes=2)
    array([[0, 1],
           [2, 1]])
    """
    for given in (rows, areas, centers):
        check_codes(given)
    if homes < 1:
        raise InputError(f"homes must be at least 1 to find any, not {homes}")
    if len(centers) == 0 or len(areas) == 0:
        raise InputError("there is no center to be a home")
    if not rows.shape[1] == areas.shape[1] == centers.shape[1]:
        raise InputError(
            f"rows have {rows.shape[1]} bytes of bits, areas {areas.shape[1]}, centers {centers.shape[1]}"
        )
    homes = min(homes, len(centers))
    order = np.argsort(area_of, kind="stable")
    bounds = np.searchsorted(area_of[order], np.arange(len(areas) + 1))
    # As many areas as surely hold enough centers: those with the fewest, taken together.
    fewest = np.cumsum(np.sort(np.diff(bounds)))
    count = min(len(areas), max(looked, int(np.searchsorted(fewest, homes)) + 1))
    first, ordered = signs(areas).T, centers[order]
    found = np.empty((len(rows), homes), dtype=np.int64)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = signs(rows[start : start + BLOCK_ROWS])
        near = _largest(block @ first, count)
        found[start : start + len(block)] = _best(block, near, ordered, order, bounds, homes)
    return found


def _largest(values: Values, count: int) -> Positions:
    """Columns of the largest values of each row, the first of equal ones. The values are overwritten."""
    if count >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if count > FEW:
        return smallest(-values.astype(np.int64), count)
    found = np.empty((len(values), count), dtype=np.int64)
    for place in range(count):
        found[:, place] = values.argmax(axis=1)
        np.put_along_axis(values, found[:, place, None], -np.inf, axis=1)
    return found


def _best(
    rows: Values, near: Positions, centers: CodeArray, order: Positions, bounds: Positions, homes: int
) -> Positions:
    """The nearest centers of rows in the areas `near` (n, areas) to them; `order` has their positions."""
    count = near.shape[1]
    pairs = np.argsort(near.reshape(-1), kind="stable")
    area = near.reshape(-1)[pairs]
    begins = np.searchsorted(area, np.arange(len(bounds)))
    total = len(order) + 1
    # The distance and the position of the center in one number: of equal distances the first center counts.
    best = np.full((len(rows), homes), np.iinfo(np.int64).max, dtype=np.int64)
    for i in np.unique(area).tolist():
        low, high = int(bounds[i]), int(bounds[i + 1])
        if low == high:
            continue
        who = pairs[begins[i] : begins[i + 1]] // count
        equal = rows[who] @ signs(centers[low:high]).T
        if homes == 1:
            top = equal.argmax(axis=1)
            value = np.take_along_axis(equal, top[:, None], axis=1)[:, 0]
            keys = (rows.shape[1] - value.astype(np.int64)) * total + order[low + top]
            best[who, 0] = np.minimum(best[who, 0], keys)
            continue
        keys = (rows.shape[1] - equal.astype(np.int64)) * total + order[low:high]
        best[who] = np.sort(np.concatenate([best[who], keys], axis=1), axis=1)[:, :homes]
    return best % total
