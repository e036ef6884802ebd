"""What an updater learns from a batch, with no transaction open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foh_pg.learners import Learner
from foh_pg.tables.centers import Centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model import Model
from foh_pg.tables.model_state import load_arrays
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.tables.source import join_rows
from foh_pg.updater import training
from foh_pg.updater.batch import Batch
from foh_pg.updater.handover import Handover
from foh_pg.updater.weighing import outdated, read_sample_to_weigh, with_ranking

# At most this many deleted and changed keys wait for the next stage; with more, the learner forgets at once.
FORGOTTEN = 10_000


@dataclass(frozen=True)
class Stage:
    """The model to merge under; whether it is new, and whether the learner has studied the pending rows."""

    model: Model
    new: bool
    studied: bool
    learner: Learner | None
    metrics: dict[str, Any]


@dataclass(kw_only=True)
class Studying:
    """The model that is served, and the learner behind it."""

    session: Session
    run: Run
    index: IndexRow
    centers: Centers
    model: Model
    # The version that learned the hash functions of the model.
    learned: int
    # Whether these are the very first, made before any row.
    first: bool
    handover: Handover
    # Loaded when it is first needed.
    learner: Learner | None = None

    @property
    def learns(self) -> bool:
        """Whether anything can be learned: without labels only the mean, and only once."""
        return self.index.labels is not None or self.first

    def _stage(self, batch: Batch) -> Stage:
        """Learn from the batch where there is enough to learn from; with no transaction open."""
        index = self.index
        changed = np.union1d(self.handover.forgotten, batch.items.keys)
        if not batch.due:
            stage = self._center(batch)
            if len(changed) < min(int(index.options["learn_rows"]), FORGOTTEN):
                return stage
            return replace(stage, learner=self._forget(changed))
        with self.run.phase("learn"):
            learner = self._forget(changed)
            rows = join_rows(index, [batch.pending, batch.rows])
            held = training.held_out(index, rows)
            studied = rows.take(~held)
            training.learn(index, learner, studied)
        with self.run.phase("compare"):
            scale = self.model.scale if not self.first else training.scale_of(index, rows, learner.mean_)
            candidate = training.served(index, learner, scale, self.model)
            examined = join_rows(index, [batch.examined, rows.take(held)])
            verdict = training.compare(index, examined, candidate, self.model)
        if verdict.serve:
            return Stage(self._weighed(candidate, batch), True, True, learner, verdict.metrics)
        self.run.note(verdict.note + "; the rows were merged under the old one")
        stage = self._center(batch)
        return replace(stage, learner=learner, studied=True, metrics=verdict.metrics)

    def _weighed(self, candidate: Model, batch: Batch) -> Model:
        """The candidate; with a ranking chosen anew where the table has doubled since the last choice."""
        rows = int(self.centers.lengths.sum()) + len(batch.rows)
        if not outdated(candidate.ranking, rows):
            return candidate
        sample = read_sample_to_weigh(self.session, self.index, rows)
        return with_ranking(self.run, self.index, candidate, sample, rows)

    def _center(self, batch: Batch) -> Stage:
        """Where nothing is learned: move the random hyperplanes to the mean of the rows, once."""
        index, seen = self.index, self.handover.rows_seen + len(batch.rows)
        if not self.first or len(batch.rows) < 2 or seen < int(index.options["learn_rows"]):
            return Stage(self.model, False, False, None, {})
        mean = batch.rows.vectors.mean(axis=0, dtype=np.float64)
        scale = training.scale_of(index, batch.rows, mean)
        model = training.random_model(index, mean, scale, self.model)
        return Stage(model, True, False, None, {})

    def _forget(self, keys: KeyArray) -> Learner:
        """The learner, without what it kept of rows that were deleted or changed."""
        learner = self._load_learner()
        learner.forget_keys(training.names_of(self.index, keys))
        return learner

    def _load_learner(self) -> Learner:
        if self.learner is None:
            with self.session.snapshot():
                arrays = load_arrays(self.session, "learner", self.learned)
            self.learner = (
                training.new_learner(self.index) if arrays is None else training.restored(self.index, arrays)
            )
        return self.learner
