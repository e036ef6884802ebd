"""What a batch teaches, with no transaction open."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.source import join_rows
from foh_pg.updater import training
from foh_pg.updater.batch import Batch, handover_after
from foh_pg.updater.handover import Handover
from foh_pg.updater.index_state import State
from foh_pg.updater.weighing import outdated, weigh_by_sample

# At most this many deleted and changed keys wait for the next stage; with more, the learner forgets at once.
FORGOTTEN = 10_000


@dataclass(frozen=True)
class Learned:
    """The model to place rows by, and what the next run must know."""

    model: Model
    handover: Handover
    # Whether the hash functions of the model are new.
    new: bool = False
    # The learner, where it has learned or forgotten anything.
    learner: Learner | None = None
    metrics: dict[str, Any] = field(default_factory=dict)

    def taught(self, state: State) -> State:
        """The state from which a further batch can teach, before anything is installed."""
        served = replace(state.served, model=self.model, first=state.served.first and not self.new)
        return replace(state, served=served, handover=self.handover, learner=self.learner or state.learner)


def learn(session: Session, run: Run, state: State, batch: Batch) -> Learned:
    """Learn from a batch where there is enough to learn from."""
    changed = np.union1d(state.handover.forgotten, batch.items.keys)
    if batch.due:
        return _stage(session, run, state, batch, changed)
    model, new = _centered(state, batch)
    learner = None
    if len(changed) >= min(int(state.index.options["learn_rows"]), FORGOTTEN):
        learner = _forget(session, state, changed)
    handover = handover_after(batch, state.handover, learns=state.learns, forgot=learner is not None)
    return Learned(model, handover, new, learner=learner)


def _stage(session: Session, run: Run, state: State, batch: Batch, changed: KeyArray) -> Learned:
    """Learn from the rows of the batch and from those that wait; serve what was learned if it is no worse."""
    index, served = state.index, state.served
    with run.phase("learn"):
        learner = _forget(session, state, changed)
        rows = join_rows(index, [batch.pending, batch.rows])
        held = training.held_out(index, rows)
        training.learn(index, learner, rows.take(~held))
    with run.phase("compare"):
        scale = training.scale_of(index, rows, learner.mean_) if served.first else served.model.scale
        candidate = training.served(index, learner, scale, served.model)
        examined = join_rows(index, [batch.examined, rows.take(held)])
        verdict = training.compare(index, examined, candidate, served.model)
    if verdict.serve:
        model, new = candidate, True
    else:
        run.note(verdict.note + "; the rows were merged under the old one")
        model, new = _centered(state, batch)
    handover = handover_after(batch, state.handover, learns=state.learns, studied=True, forgot=True)
    return Learned(model, handover, new, learner=learner, metrics=verdict.metrics)


def weigh_again(session: Session, run: Run, state: State, batch: Batch, learned: Learned) -> Learned:
    """What was learned, with a new ranking if the table has doubled since the ranking was chosen."""
    rows = state.rows + len(batch.rows)
    if state.served.first or len(state.centers) == 0 or not outdated(learned.model.ranking, rows):
        return learned
    model = weigh_by_sample(session, run, state.index, learned.model, state.centers, rows)
    return replace(learned, model=model)


def _centered(state: State, batch: Batch) -> tuple[Model, bool]:
    """The model where nothing is learned: random hyperplanes move to the mean of the rows, once."""
    index, served = state.index, state.served
    seen = state.handover.rows_seen + len(batch.rows)
    if not served.first or len(batch.rows) < 2 or seen < int(index.options["learn_rows"]):
        return served.model, False
    mean = batch.rows.vectors.mean(axis=0, dtype=np.float64)
    scale = training.scale_of(index, batch.rows, mean)
    return training.random_model(index, mean, scale, served.model), True


def _forget(session: Session, state: State, keys: KeyArray) -> Learner:
    """The learner, without what it kept of rows that were deleted or changed."""
    learner = state.load_learner(session)
    learner.forget_keys(training.names_of(state.index, keys))
    return learner
