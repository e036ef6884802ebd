"""The pool: areas, centers, the home of every row, and which lists a new version affects (numpy only).

Everything takes and gives plain arrays: codes are packed bytes (n, bytes), rows their embeddings (n, d), and
a center is named by its position in the arrays given. Ids of centers are the caller's, who never uses one
twice.
"""

from __future__ import annotations

from foh_pg.clustering.distance import Metric, Rows, Values, unit
from foh_pg.clustering.homes import NEAR_AREAS, Positions, find_homes
from foh_pg.clustering.kmeans import nearest_center
from foh_pg.clustering.levels import (
    Levels,
    default_probes,
    group_centers,
    make_levels,
    target_areas,
    target_centers,
)
from foh_pg.clustering.neighbors import find_neighbors, keep_nearest, pool_distance
from foh_pg.clustering.split import split_list
from foh_pg.clustering.staleness import Affected, find_affected

__all__ = [
    "NEAR_AREAS",
    "Affected",
    "Levels",
    "Metric",
    "Positions",
    "Rows",
    "Values",
    "default_probes",
    "find_affected",
    "find_homes",
    "find_neighbors",
    "group_centers",
    "keep_nearest",
    "make_levels",
    "nearest_center",
    "pool_distance",
    "split_list",
    "target_areas",
    "target_centers",
    "unit",
]
