"""New centers, chosen from a sample of the rows."""

from __future__ import annotations

import numpy as np

from foh_pg import clustering
from foh_pg.model.model import Model
from foh_pg.tables.centers import Centers, make_centers, no_centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.source import Rows

# Rows of a sample for each center, at the least. Centers that are rows and no means would be twice as many,
# and the lists that a search reads would hold fewer of its exact neighbors.
LEAST_SAMPLED = 2


def choose_centers(index: IndexRow, model: Model, rows: int, sample: Rows) -> Centers:
    """Areas and centers for `rows` rows, of which a sample is at hand: as many as the index should have."""
    if len(sample) == 0:
        return no_centers(index)
    target = clustering.target_centers(max(rows, 1), index.options["centers"])
    if index.options["centers"] is None and len(sample) < rows:
        target = max(1, min(target, len(sample) // LEAST_SAMPLED))
    rng = np.random.default_rng([int(index.options["seed"]), index.version])
    levels = model.levels(rng, sample.vectors, target)
    return make_centers(index, index.next_center, levels, index.version + 1)
