"""Rows that ask when a ranking is chosen, and a model that has learned nothing from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg.model.model import Model
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.source import Rows
from foh_pg.updater import training

# At most this many rows ask, and at most this share of those with labels.
QUERIES = 300
ASKING = 0.2
# The model that is made for them learns from at most this many rows.
STUDIED = 20_000

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def wanted_queries(labelled: int) -> int:
    """How many of so many rows with labels should ask.

    >>> wanted_queries(1000), wanted_queries(100_000)
    (200, 300)
    """
    return min(QUERIES, int(ASKING * labelled))


def hold_out_enough(index: IndexRow, model: Model, rows: Rows) -> tuple[Bools, Model]:
    """Which rows may ask, and the model to ask.

    In a small table too few rows never train: the gain by labels could not be told from chance. So further
    rows ask there, and a model answers that has learned from all the others but not from these.
    """
    held, labelled = training.held_out(index, rows), rows.labels.lengths > 0
    missing = wanted_queries(int(labelled.sum())) - int((held & labelled).sum())
    if missing <= 0:
        return held, model
    others = np.flatnonzero(labelled & ~held)
    # Those that a larger option held_out would hold out.
    order = np.argsort(index.keys.shares(rows.keys[others]), kind="stable")
    held[others[order[:missing]]] = True
    if not model.trained:
        return held, model
    studied = rows.take(spread(np.flatnonzero(labelled & ~held), STUDIED))
    learner = training.new_learner(index)
    for stage in training.stages(index, len(studied)):
        training.learn(index, learner, studied.take(stage))
    return held, training.served(index, learner, model.scale, model)


def spread(rows: Ints, count: int) -> Ints:
    """So many of these rows at the most, at equal distances: the order of keys is often one of time.

    >>> spread(np.arange(100), 3).tolist()
    [0, 49, 99]
    """
    return rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)]
