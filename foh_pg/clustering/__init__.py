"""The pool: areas, centers, the home of every row, and which lists a new version affects (numpy only).

Everything takes and gives plain arrays: codes and geometry bits are packed bytes (n, bytes), rows their
embeddings (n, d), and a center is named by its position in the arrays given. Ids of centers are the caller's,
who never uses one twice. Embeddings only help to find the first centers: from then on centers, areas and
homes go by geometry bits alone.
"""

from __future__ import annotations

from foh_pg.clustering.distance import Metric, Rows, Values, unit
from foh_pg.clustering.homes import ListsRead, find_homes, near_areas, total_hamming
from foh_pg.clustering.levels import (
    BitLevels,
    Levels,
    by_bits,
    group_centers,
    make_levels,
    target_areas,
    target_centers,
)
from foh_pg.clustering.signs import Positions, majority, nearest_bits
from foh_pg.clustering.split import split_list
from foh_pg.clustering.staleness import Affected, find_affected

__all__ = [
    "Affected",
    "BitLevels",
    "Levels",
    "ListsRead",
    "Metric",
    "Positions",
    "Rows",
    "Values",
    "by_bits",
    "find_affected",
    "find_homes",
    "group_centers",
    "majority",
    "make_levels",
    "near_areas",
    "nearest_bits",
    "split_list",
    "target_areas",
    "target_centers",
    "total_hamming",
    "unit",
]
