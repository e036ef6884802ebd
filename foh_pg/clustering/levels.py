"""Two levels of centers: areas, and inside each area its share of the centers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from foh_pg.arrays.codes import CodeArray
from foh_pg.clustering.distance import Metric, Rows, Values, unit
from foh_pg.clustering.homes import find_homes
from foh_pg.clustering.kmeans import assign, cluster
from foh_pg.clustering.signs import Positions, majority, nearest_bits
from foh_pg.errors import InputError
from foh_pg.geometry import Geometry

AREA_ITERATIONS = 8
CENTER_ITERATIONS = 15

# A row that has a nearer center in a farther area hardly changes a mean. Of more rows than that every
# second, third ... is asked: that is still ten for each center of a table of a million rows.
SETTLE_AREAS = 3
SETTLE_ROWS = 100_000
# More rounds gain nothing.
GROUP_ITERATIONS = 2

# Areas are few: this many rows for each show where they lie.
ROWS_PER_AREA = 512

# Rows of a list, on average and at the most: a table of a million rows reaches it, and beyond it there are
# more lists, as long as these. Centers of an area likewise, as many as fit a page: a search reads the areas
# that it looks into page by page.
LIST_ROWS = 100
AREA_CENTERS = 40


class Levels(NamedTuple):
    """Areas, centers, and which area each center lies in."""

    # Shape (g, d).
    areas: Values
    # Shape (u, d). Ordered by area; every area has at least one.
    centers: Values
    # Shape (u,).
    area_of: Positions


class BitLevels(NamedTuple):
    """The same, by geometry bits."""

    # Shape (g, bytes).
    areas: CodeArray
    # Shape (u, bytes).
    centers: CodeArray
    # Shape (u,).
    area_of: Positions


def target_centers(rows: int, fixed: int | None = None) -> int:
    """How many centers to have: rows ** (2/3), or as many as the user says.

    Lists then have about rows ** (1/3) members, LIST_ROWS at the most. Short lists cost little to read, so a
    search can afford to read the lists of several centers, which together follow the neighborhood of a query
    closely.

    Examples
    --------
    >>> [target_centers(rows) for rows in (60_000, 1_000_000, 10_000_000)]
    [1533, 10000, 100000]
    """
    if fixed is not None:
        return fixed
    return max(1, round(max(math.pow(rows, 2 / 3), rows / LIST_ROWS)))


def target_areas(centers: int) -> int:
    """How many areas to have: as many as an area has centers, which are AREA_CENTERS at the most.

    All areas are compared, and then the centers of the nearest ones. So that areas do not become too many,
    they hold more centers in tables of ten million rows and more.

    Examples
    --------
    >>> [target_areas(centers) for centers in (1533, 10_000, 100_000)]
    [39, 250, 2154]
    """
    return max(1, round(max(math.sqrt(centers), min(centers / AREA_CENTERS, math.pow(centers, 2 / 3)))))


def make_levels(rng: np.random.Generator, rows: Rows, centers: int, metric: Metric = "cosine") -> Levels:
    """Find areas by k-means of the rows, then the centers of each area by k-means of its rows.

    Parameters
    ----------
    centers : int
        How many; fewer come out where there are fewer rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> made = make_levels(rng, rng.standard_normal((500, 8)), 60)
    >>> made.areas.shape, made.centers.shape, len(np.unique(made.area_of))
    ((8, 8), (60, 8), 8)
    """
    given = np.ascontiguousarray(rows, dtype=np.float32)
    if len(given) == 0:
        raise InputError("centers cannot be found without a row")
    if metric == "cosine":
        given = unit(given)
    centers = min(centers, len(given))
    wanted = target_areas(centers)
    shown = given
    if len(given) > wanted * ROWS_PER_AREA:
        shown = given[np.sort(rng.choice(len(given), wanted * ROWS_PER_AREA, replace=False))]
    areas = cluster(rng, shown, wanted, AREA_ITERATIONS, metric)
    nearest, _ = assign(given, areas, metric)
    sizes = np.bincount(nearest, minlength=len(areas))
    areas, sizes = areas[sizes > 0], sizes[sizes > 0]
    nearest = np.unique(nearest, return_inverse=True)[1].reshape(-1)
    order, bounds = np.argsort(nearest, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])
    shares = _shares(sizes, centers)
    found = [
        cluster(rng, given[order[bounds[i] : bounds[i + 1]]], int(share), CENTER_ITERATIONS, metric)
        for i, share in enumerate(shares)
    ]
    return Levels(
        areas, np.concatenate(found), np.repeat(np.arange(len(areas)), [len(part) for part in found])
    )


def by_bits(levels: Levels, rows: Rows, geometry: Geometry) -> BitLevels:
    """Levels that were found among the embeddings of rows, brought in line with the bits of these rows.

    A center becomes the mean of the rows that are at home in it by their bits, as each piece of a list
    that is split later does. Rows are given as `Geometry.compared` makes them.
    """
    bits = geometry.encode_compared(rows[:: max(1, len(rows) // SETTLE_ROWS)])
    areas, centers = geometry.encode_compared(levels.areas), geometry.encode_compared(levels.centers)
    found = BitLevels(areas, centers, levels.area_of)
    home = find_homes(bits, found, geometry.layout, looked=SETTLE_AREAS, quick=True)
    return group_centers(areas, geometry.means(bits, home, centers))


def group_centers(areas: CodeArray, centers: CodeArray) -> BitLevels:
    """Give each center to its nearest area, and each area the bits that most of its centers have."""
    for _ in range(GROUP_ITERATIONS):
        areas = majority(centers, nearest_bits(centers, areas), areas)
    used, area_of = np.unique(nearest_bits(centers, areas), return_inverse=True)
    return BitLevels(areas[used], centers, area_of.reshape(-1).astype(np.int64))


def _shares(sizes: Positions, total: int) -> Positions:
    """Share `total` centers out by the number of rows: at least one to each area, at most one per row."""
    ideal = sizes * (total / sizes.sum())
    shares = np.clip(np.floor(ideal).astype(np.int64), 1, sizes)
    missing = total - int(shares.sum())
    order = np.argsort(shares - ideal, kind="stable")
    while missing > 0:
        room = order[shares[order] < sizes[order]][:missing]
        if len(room) == 0:
            break
        shares[room] += 1
        missing -= len(room)
    return np.asarray(shares)
