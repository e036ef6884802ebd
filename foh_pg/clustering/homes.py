"""Which centers a row belongs to: the nearest by bits among those of its nearest areas.

A search looks for its centers in the same way (nearest_centers in sql/index/near.sql). Distances are whole
numbers here and there, and of equal ones the first in order counts: so the home of a row is the list that a
search by the vector of the row reads first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foh_pg.arrays.codes import CodeArray, check_codes, hamming, hamming_pairs, smallest
from foh_pg.clustering.signs import Positions, Values
from foh_pg.errors import InputError

# Areas in which the home of a row is looked for; a search looks into one more for every eight probes.
NEAR_AREAS = 8
PROBES_PER_AREA = 8

# Rows at a time: for each of these blocks the centers of all areas that are near to any row are unpacked.
BLOCK_ROWS = 16_384

# Centers of each area that take part besides the homes wanted after a first look by numbers, and of all areas
# together those that are compared by bits.
MORE = 2
COMPARED = 6

# So many areas are all compared by bits; of more of them only those that are nearest by numbers.
FEW_AREAS = 200
MORE_AREAS = 8

# So many largest values are sooner found one by one.
FEW = 16


def near_areas(probes: int) -> int:
    """How many areas are looked into for the nearest `probes` centers.

    Examples
    --------
    >>> [near_areas(probes) for probes in (1, 10, 32)]
    [8, 9, 12]
    """
    return NEAR_AREAS + probes // PROBES_PER_AREA


def least_probes(place: Positions) -> Positions:
    """With how many probes a search looks into an area that is the nearest (place 0), the second, and so on.

    Examples
    --------
    >>> least_probes(np.array([0, 7, 8, 15])).tolist()
    [1, 1, 8, 64]
    """
    return np.maximum(1, PROBES_PER_AREA * (place - NEAR_AREAS + 1))


def find_homes(
    rows: CodeArray,
    areas: CodeArray,
    centers: CodeArray,
    area_of: Positions,
    *,
    homes: int = 1,
    looked: int = NEAR_AREAS,
    numbers: int | None = None,
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
    numbers : int, optional
        How many numbers the bits are thresholds of: all first thresholds, then all second ones, and so on.
        Much is saved where it is known: centers are then compared by numbers, and only those nearest in each
        area by bits. Hardly ever is the nearest by bits not among them.

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
    found = np.empty((len(rows), homes), dtype=np.int64)
    for start in range(0, len(rows), BLOCK_ROWS):
        bits = rows[start : start + BLOCK_ROWS]
        block = _Levels.of(bits, numbers)
        near = _near(bits, block, areas, numbers, count)
        among = _among(block, near, centers[order], numbers, bounds, homes)
        found[start : start + len(bits)] = _nearest(bits, centers, np.append(order, -1)[among], homes)
    return found


@dataclass(frozen=True)
class _Levels:
    """Bits as the numbers that they are thresholds of: how many thresholds each number exceeds."""

    values: Values
    # Half of the squared length of each.
    halves: Values

    @classmethod
    def of(cls, bits: CodeArray, numbers: int | None) -> _Levels:
        total = 8 * bits.shape[1]
        each = numbers or total
        ones = np.unpackbits(bits, axis=1, count=total // each * each)
        values = ones.reshape(len(bits), -1, each).sum(axis=1, dtype=np.uint8).astype(np.float32)
        return cls(values, 0.5 * np.einsum("ij,ij->i", values, values))

    def nearness(self, rows: _Levels) -> Values:
        """A number that is larger the nearer each of these is to a row; exact, being a sum of halves."""
        found: Values = rows.values @ self.values.T
        found -= self.halves
        return found


def _near(bits: CodeArray, rows: _Levels, areas: CodeArray, numbers: int | None, count: int) -> Positions:
    """The `count` nearest areas of each row."""
    if len(areas) <= FEW_AREAS:
        return smallest(hamming(bits, areas), count)
    near = _largest(_Levels.of(areas, numbers).nearness(rows), min(len(areas), count + MORE_AREAS))
    return _nearest(bits, areas, near, count)


def _among(
    rows: _Levels, near: Positions, centers: CodeArray, numbers: int | None, bounds: Positions, homes: int
) -> Positions:
    """Centers, ordered by area, of the areas near to a row, the nearest surely among them; -1 for none."""
    # Without numbers the first look is exact.
    wanted = homes if numbers is None else homes + MORE
    count = near.shape[1]
    pairs = np.argsort(near.reshape(-1), kind="stable")
    area = near.reshape(-1)[pairs]
    begins = np.searchsorted(area, np.arange(len(bounds)))
    found = np.full((near.size, wanted), -1, dtype=np.int64)
    nearness = np.full(found.shape, -np.inf, dtype=np.float32)
    for i in np.unique(area).tolist():
        low, high = int(bounds[i]), int(bounds[i + 1])
        if low < high:
            mine = pairs[begins[i] : begins[i + 1]]
            who = mine // count
            values = _Levels.of(centers[low:high], numbers).nearness(_Levels(rows.values[who], rows.halves))
            best = _largest(values.copy(), min(wanted, high - low))
            found[mine, : best.shape[1]] = low + best
            nearness[mine, : best.shape[1]] = np.take_along_axis(values, best, axis=1)
    found = found.reshape(len(near), -1)
    if numbers is None or found.shape[1] <= homes + COMPARED:
        return found
    best = _largest(nearness.reshape(found.shape), homes + COMPARED)
    return np.take_along_axis(found, best, axis=1)


def _largest(values: Values, count: int) -> Positions:
    """Columns of the largest values of each row, the first of equal ones. The values are overwritten."""
    if count >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if count > FEW:
        return smallest((-2 * values).astype(np.int64), count)
    found = np.empty((len(values), count), dtype=np.int64)
    for place in range(count):
        found[:, place] = values.argmax(axis=1)
        np.put_along_axis(values, found[:, place, None], -np.inf, axis=1)
    return found


def _nearest(rows: CodeArray, centers: CodeArray, among: Positions, count: int) -> Positions:
    """The `count` nearest of some centers of each row by bits, the first of equally near ones first."""
    distances = hamming_pairs(rows, centers, among).astype(np.int64)
    # The distance and the position in one number.
    keys = np.where(among < 0, np.iinfo(np.int64).max, distances * len(centers) + among)
    if count < keys.shape[1]:
        keys = np.partition(keys, count - 1, axis=1)[:, :count]
    return np.asarray(np.sort(keys, axis=1) % len(centers))
