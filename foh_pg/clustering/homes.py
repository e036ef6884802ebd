"""Which center a row belongs to, and which centers a search reads: the nearest in the nearest areas.

sql/index/near.sql finds the same: distances are whole numbers here and there, and of equal ones the first in
order counts. Rows and queries are looked at three times: by their bits, and by those of their numbers moved
up and down. Of a row only the bits are known, of a query the numbers, which are moved more finely: so the
home of a row need not be the first center that a search by its vector finds; it is one of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, hamming, hamming_pairs, smallest
from foh_pg.clustering.signs import Positions, Values
from foh_pg.geometry import Layout

# Areas in which the home of a row is looked for where there are few; a search looks into one more for every
# eight probes. Where there are more than MANY_AREAS, all these numbers grow as the root of their number does.
# As in fragment areas_times of sql/index/near.sql.
NEAR_AREAS = 8
PROBES_PER_AREA = 8
MANY_AREAS = 40

# Centers that are nearest by the bits of a row, of which the nearest by all its looks is its home.
NEAREST = 8

# Farther than any distance, and than any distance together with a position.
FAR = 1 << 20
NEVER = np.iinfo(np.int64).max

# Rows at a time: for each of these blocks the centers of all areas that are near to any row are unpacked.
BLOCK_ROWS = 16_384

# Centers of each area that take part after a first look by numbers.
PER_AREA = 3

# So many areas are all compared by bits; of more of them only those that are nearest by numbers.
FEW_AREAS = 200
MORE_AREAS = 8

# So many largest values are sooner found one by one.
FEW = 16

# Areas, centers, and the area of each center.
Levels = tuple[CodeArray, CodeArray, Positions]


def near_areas(probes: int, areas: int) -> int:
    """How many of the areas are looked into for the nearest `probes` centers.

    Examples
    --------
    >>> [near_areas(probes, 40) for probes in (1, 10, 32)]
    [8, 9, 12]
    >>> near_areas(32, 160)
    24
    """
    return math.floor((NEAR_AREAS + probes // PROBES_PER_AREA) * _times(areas))


def _times(areas: int) -> float:
    return max(math.sqrt(areas / MANY_AREAS), 1.0)


class ListsRead:
    """Which lists searches read. `looks`: the sets of bits of their queries."""

    def __init__(self, looks: Sequence[CodeArray], levels: Levels) -> None:
        areas, centers, self.area_of = levels
        self.far = total_hamming(looks, centers)
        order = smallest(hamming(looks[0], areas), len(areas))
        # Which area is the nearest to each query (0), the second (1), and so on.
        self.place = np.empty_like(order)
        np.put_along_axis(self.place, order, np.arange(len(areas))[None], axis=1)

    def by(self, probes: int) -> npt.NDArray[np.bool_]:
        """The lists that are read with so many probes: an array (queries, centers)."""
        looked_into = self.place < near_areas(probes, self.place.shape[1])
        among = np.take_along_axis(looked_into, self.area_of[None], axis=1)
        read = np.zeros(among.shape, dtype=bool)
        nearest = smallest(np.where(among, self.far, FAR), min(probes, among.shape[1]))
        np.put_along_axis(read, nearest, True, axis=1)
        return np.asarray(read & among)


def total_hamming(looks: Sequence[CodeArray], codes: CodeArray) -> npt.NDArray[np.int64]:
    """In how many bits the sets of bits of each query, all together, differ from each code."""
    return np.asarray(sum(hamming(look, codes).astype(np.int64) for look in looks))


def find_homes(
    rows: CodeArray, levels: Levels, layout: Layout, *, looked: int | None = None, quick: bool = False
) -> Positions:
    """Find the home of every row, as the position of a center.

    Parameters
    ----------
    rows : array (n, bytes)
        Geometry bits.
    levels : (areas, centers, area_of)
        The geometry bits of areas and centers, and the area of each center.
    looked : int, optional
        How many areas of a row are looked into; by default as many as a trigger looks into.
    quick : bool
        Compare centers by the numbers that bits are thresholds of, and only the nearest of them by bits.
        Hardly ever is the home another one.

    Examples
    --------
    >>> centers = np.array([[0b11110000], [0b11000000], [0b00001111]], dtype=np.uint8)
    >>> rows = np.array([[0b11010000], [0b00001110]], dtype=np.uint8)
    >>> find_homes(rows, (centers[[0, 2]], centers, np.array([0, 0, 1])), Layout(8, 1))
    array([0, 2])
    """
    areas, centers, area_of = levels
    order = np.argsort(area_of, kind="stable")
    bounds = np.searchsorted(area_of[order], np.arange(len(areas) + 1))
    count = min(len(areas), near_areas(1, len(areas)) if looked is None else looked)
    found = np.empty(len(rows), dtype=np.int64)
    each = layout.numbers if quick else None
    for start in range(0, len(rows), BLOCK_ROWS):
        bits = rows[start : start + BLOCK_ROWS]
        block = _Numbers.of(bits, each)
        near = _near(bits, block, areas, each, count)
        among = _among(block, near, centers, order, bounds, each)
        looks = (bits, *layout.moved(bits))
        total = sum(hamming_pairs(look, centers, among).astype(np.int64) for look in looks)
        best = np.where(among < 0, NEVER, total * len(centers) + among).min(axis=1)
        found[start : start + len(bits)] = best % len(centers)
    return found


@dataclass(frozen=True)
class _Numbers:
    """Bits as the numbers that they are thresholds of: how many thresholds each number exceeds.

    Or as they are: then nearness is exact.
    """

    values: Values
    # Half of the squared length of each.
    halves: Values

    @classmethod
    def of(cls, bits: CodeArray, numbers: int | None) -> _Numbers:
        total = 8 * bits.shape[1]
        each = numbers or total
        ones = np.unpackbits(bits, axis=1, count=total // each * each)
        values = ones.reshape(len(bits), -1, each).sum(axis=1, dtype=np.uint8).astype(np.float32)
        return cls(values, 0.5 * np.einsum("ij,ij->i", values, values))

    def nearness(self, rows: _Numbers) -> Values:
        """A number that is larger the nearer each of these is to a row; exact, being a sum of halves."""
        found: Values = rows.values @ self.values.T
        found -= self.halves
        return found


def _near(bits: CodeArray, rows: _Numbers, areas: CodeArray, numbers: int | None, count: int) -> Positions:
    """The `count` nearest areas of each row."""
    if len(areas) <= FEW_AREAS:
        return smallest(hamming(bits, areas), count)
    near = _largest(_Numbers.of(areas, numbers).nearness(rows), min(len(areas), count + MORE_AREAS))
    return _nearest(bits, areas, near, count)


def _among(
    rows: _Numbers,
    near: Positions,
    centers: CodeArray,
    order: Positions,
    bounds: Positions,
    numbers: int | None,
) -> Positions:
    """The nearest centers in the areas near to each row, the first of equally near ones; -1 for none.

    `order` has the centers of the first area, then those of the second, and so on; `bounds` says where each
    area begins in it.
    """
    wanted = NEAREST if numbers is None else PER_AREA
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
            values = _Numbers.of(centers[order[low:high]], numbers).nearness(
                _Numbers(rows.values[who], rows.halves)
            )
            best = _largest(values.copy(), min(wanted, high - low))
            found[mine, : best.shape[1]] = order[low + best]
            nearness[mine, : best.shape[1]] = np.take_along_axis(values, best, axis=1)
    # Nearness and position in one number.
    keys = np.where(
        found < 0, NEVER, (-2 * np.where(found < 0, 0, nearness)).astype(np.int64) * len(centers) + found
    )
    keys = keys.reshape(len(near), -1)
    if keys.shape[1] > NEAREST:
        keys = np.partition(keys, NEAREST - 1, axis=1)[:, :NEAREST]
    return np.where(keys == NEVER, -1, keys % len(centers))


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
    """The `count` nearest of some centers of each row by bits, the first of equally near; -1 for none."""
    if count >= among.shape[1]:
        return among
    distances = hamming_pairs(rows, centers, among).astype(np.int64)
    # The distance and the position in one number.
    keys = np.where(among < 0, NEVER, distances * len(centers) + among)
    keys = np.sort(np.partition(keys, count - 1, axis=1)[:, :count], axis=1)
    return np.where(keys == NEVER, -1, keys % len(centers))
