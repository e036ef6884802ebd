"""The query pool: centers, the home of every row, and which lists a new version affects (numpy only).

Everything takes and gives plain arrays: codes are packed bytes (n, bytes), rows their embeddings (n, d), and
a center is named by its position in the arrays given. Ids of centers are the caller's, who never uses one
twice.
"""

from __future__ import annotations

from foh_pg.pool.affected import Affected, find_affected, sample_members
from foh_pg.pool.centers import CenterChange, sample_centers, split_list, target_centers, too_long
from foh_pg.pool.distance import Metric, blend_blocks, blend_rows
from foh_pg.pool.filling import Pool, build
from foh_pg.pool.homes import find_homes, find_neighbors, keep_nearest
from foh_pg.pool.nearest import nearest_center

__all__ = [
    "Affected",
    "CenterChange",
    "Metric",
    "Pool",
    "blend_blocks",
    "blend_rows",
    "build",
    "find_affected",
    "find_homes",
    "find_neighbors",
    "keep_nearest",
    "nearest_center",
    "sample_centers",
    "sample_members",
    "split_list",
    "target_centers",
    "too_long",
]
