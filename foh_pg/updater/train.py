"""Hash functions learned from a sample of all rows, as a build and a filling of an index need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.label_habits import strange_labels
from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.runs.run import Run
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.source import Rows
from foh_pg.updater import training

# With fewer labelled rows there is nothing to learn.
LEAST_LABELLED = 100


@dataclass(frozen=True)
class Trained:
    """Hash functions for a new fill; `pending` are rows that a later stage should learn from."""

    model: Model
    learner: Learner | None
    metrics: dict[str, Any]
    pending: npt.NDArray[Any]


def train(index: IndexRow, sample: Rows, rows: int, run: Run) -> Trained:
    """Learn from a sample of all rows, in stages, or take random hyperplanes through its mean."""
    learner = training.new_learner(index)
    labelled = int(np.count_nonzero(sample.labels.lengths))
    for problem, cure in strange_labels(np.unique(sample.labels.values).tolist(), labelled):
        run.note(f"{problem}; {cure}")
    held = training.held_out(index, sample)
    usable = ~held & ((sample.labels.lengths > 0) if learner.supervised else True)
    none = index.keys.empty()
    if np.count_nonzero(usable) < (LEAST_LABELLED if learner.supervised else 1):
        return Trained(
            _plain_model(index, sample), None, {}, sample.keys[usable] if learner.supervised else none
        )
    studied = sample.take(usable)
    for number, stage in enumerate(parts := training.stages(index, len(studied))):
        run.step(number, len(parts))
        training.learn(index, learner, studied.take(stage))
    learner.stand_for(round(rows * len(studied) / len(sample)))
    model = training.served(index, learner, training.scale_of(index, sample, learner.mean_))
    if not learner.supervised:
        return Trained(model, learner, {}, none)
    verdict = training.compare(index, sample.take(held), model, None)
    if not verdict.serve:
        run.note(verdict.note + "; random hyperplanes are served")
        model = _plain_model(index, sample)
    return Trained(model, learner, verdict.metrics, none)


def _plain_model(index: IndexRow, sample: Rows) -> Model:
    mean = sample.vectors.mean(axis=0, dtype=np.float64) if len(sample) else np.zeros(index.dimensions)
    return training.random_model(index, mean, training.scale_of(index, sample, mean))


def still_fits(index: IndexRow, sample: Rows, model: Model) -> bool:
    """Whether learned hash functions are better than random ones on rows of a sample that never train.

    They are not where the embeddings come from another model than those that were learned from.
    """
    found = training.compare(index, sample.take(training.held_out(index, sample)), model, None).metrics
    if found.get("map") is None or found.get("map_random") is None:
        return True
    return bool(found["map"] >= found["map_random"] + training.MARGIN)
