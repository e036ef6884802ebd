"""The first fill of an index, a new model for it, and the return to an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from foh_pg import pool
from foh_pg.database.copy import INT8
from foh_pg.errors import BuildError
from foh_pg.learners import Learner
from foh_pg.updater import training
from foh_pg.updater.centers import Centers, make_centers, no_centers
from foh_pg.updater.description import Index, find_index, read_index
from foh_pg.updater.fill import Plan, fill, load_plan, options_text
from foh_pg.updater.model import Model
from foh_pg.updater.progress import Progressed
from foh_pg.updater.run import Progress, Run, recorded
from foh_pg.updater.session import Session, open_session
from foh_pg.updater.source import Rows, count_rows, read_sample
from foh_pg.updater.state import Arrays, load_arrays

# Rows that a build learns from and chooses centers among: this many, or as many as fit this many bytes.
SAMPLE_ROWS = 40_000
SAMPLE_BYTES = 256 << 20

# With fewer labelled rows there is nothing to learn.
LEAST_LABELLED = 100

SEQS = "SELECT t.seq FROM {stream} t"
MODELS = """
SELECT DISTINCT s.version FROM foh.model_state s WHERE s.index = {id} AND s.name = 'served' ORDER BY s.version
"""

Target = str | psycopg.Connection[Any] | None


def build(target: Target, index: str, *, progress: Progress | None = None) -> Run:
    """Place all rows of a table for the first time, with hash functions trained on a sample of them.

    The table can be written to meanwhile. A build that was interrupted goes on where it was.

    Parameters
    ----------
    target : str, connection or None
        A DSN, an idle connection, or None for what libpq's environment variables say.
    index : str
        Name of the index.
    progress : callable, optional
        Called with phase, done and total.
    """
    with open_session(target) as session:
        return _fill_anew(session, index, "build", progress)


def rebuild(target: Target, index: str, *, progress: Progress | None = None) -> Run:
    """Train a new model and place all rows by it, beside what is served until the switch."""
    with open_session(target) as session:
        return _fill_anew(session, index, "rebuild", progress)


def rollback(target: Target, index: str, to: int, *, progress: Progress | None = None) -> Run:
    """Put the hash functions of an earlier version back; every row is encoded again."""
    with open_session(target) as session:
        found = _locked(session, index)
        run = Run(found.name, "rollback", found.version, found.version, progress=progress)
        with recorded(session, run):
            run.begin(session)
            kind = f"rollback {to}"
            left = load_plan(session, found, kind)
            if left is None:
                with run.phase("sample"), session.snapshot():
                    found = read_index(session)
                    model, learner = _earlier(session, found, to)
                    consumed, rows, sample = _look(session, found)
                with run.phase("centers"):
                    plan = _plan(found, kind, model, learner, consumed, rows, sample, {"rolled_back_to": to})
                fill(session, run, found, plan)
            else:
                fill(session, run, found, *left)
        return run


def fill_again(
    session: Session,
    run: Run,
    index: Index,
    model: Model,
    learner: Arrays | None,
    learned: int,
    progressed: Progressed,
) -> None:
    """Encode and place every row by a given model: `update --full`, and rows that must be read again."""
    with run.phase("sample"), session.snapshot():
        index = read_index(session)
        consumed, rows, sample = _look(session, index)
    with run.phase("centers"):
        plan = _plan(index, "full", model, learner, consumed, rows, sample, {}, learned)
        plan = replace(plan, progress=replace(progressed, rows_seen=rows).to_arrays(index))
    fill(session, run, index, plan)


def _locked(session: Session, name: str) -> Index:
    index = find_index(session, name)
    session.lock(index.id, index.name)
    return read_index(session)


def _fill_anew(session: Session, name: str, kind: str, progress: Progress | None) -> Run:
    index = _locked(session, name)
    if kind == "build" and index.status == "ready" and index.version > 1:
        raise BuildError(
            f"index {name!r} is built already: foh-pg update keeps it up to date, foh-pg rebuild trains anew"
        )
    run = Run(index.name, kind, index.version, index.version, progress=progress)
    with recorded(session, run):
        run.begin(session)
        left = load_plan(session, index, kind)
        if left is not None:
            run.note("going on with a build that was interrupted")
            fill(session, run, index, *left)
            return run
        with run.phase("sample"), session.snapshot():
            index = read_index(session)
            consumed, rows, sample = _look(session, index)
        with run.phase("learn"):
            trained = train(index, sample, rows, run)
        with run.phase("centers"):
            plan = _plan(
                index,
                kind,
                trained.model,
                trained.learner,
                consumed,
                rows,
                sample,
                trained.metrics,
                pending=trained.pending,
            )
        run.metrics.update(trained.metrics)
        fill(session, run, index, plan)
    return run


def _look(session: Session, index: Index) -> tuple[npt.NDArray[np.int64], int, Rows]:
    """What stands in the stream, how many rows there are, and a sample of them, in one snapshot."""
    found = [part[0] for part in session.copy_out(SEQS, [INT8])]
    consumed = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    rows = count_rows(session)
    wanted = min(SAMPLE_ROWS, SAMPLE_BYTES // (4 * index.dimensions))
    return consumed, rows, read_sample(session, index, min(1.0, wanted / max(rows, 1)))


# -- training ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trained:
    """Hash functions for a new fill; `pending` are rows that a later stage should learn from."""

    model: Model
    learner: Arrays | None
    metrics: dict[str, Any]
    pending: npt.NDArray[Any]


def train(index: Index, sample: Rows, rows: int, run: Run) -> Trained:
    """Learn from a sample of all rows, in stages, or take random hyperplanes through its mean."""
    learner = training.new_learner(index)
    held = training.held_out(index, sample)
    usable = ~held & ((sample.labels.lengths > 0) if learner.supervised else True)
    none = index.keys.empty()
    if np.count_nonzero(usable) < (LEAST_LABELLED if learner.supervised else 1):
        return Trained(
            _plain_model(index, sample), None, {}, sample.keys[usable] if learner.supervised else none
        )
    _stages(index, learner, sample.take(usable), run)
    learner.stand_for(round(rows * np.count_nonzero(usable) / len(sample)))
    model = training.served(index, learner, training.scale_of(index, sample, learner.mean_))
    if not learner.supervised:
        return Trained(model, learner.state(), {}, none)
    verdict = training.compare(index, sample.take(held), model, None)
    if not verdict.serve:
        run.note(verdict.note + "; random hyperplanes are served")
        model = _plain_model(index, sample)
    return Trained(model, learner.state(), verdict.metrics, none)


def _stages(index: Index, learner: Learner, rows: Rows, run: Run) -> None:
    order = np.arange(len(rows))
    if float(index.options["forget"]) == 1 and learner.supervised:
        # Keys are often in an order that labels follow; where the past is forgotten, that order is time.
        np.random.default_rng(int(index.options["seed"])).shuffle(order)
    stages = np.array_split(order, max(1, len(rows) // int(index.options["learn_rows"])))
    for number, stage in enumerate(stages):
        run.step(number, len(stages))
        training.learn(index, learner, rows.take(stage))


def _plain_model(index: Index, sample: Rows) -> Model:
    mean = sample.vectors.mean(axis=0, dtype=np.float64) if len(sample) else np.zeros(index.dimensions)
    return Model.random(mean, index.bits, int(index.options["seed"]), training.scale_of(index, sample, mean))


def _earlier(session: Session, index: Index, version: int) -> tuple[Model, Arrays | None]:
    """The hash functions that a version served: its own, or those of the last version before that has any."""
    kept = [learned for (learned,) in session.rows(MODELS)]
    earlier = [learned for learned in kept if learned <= version]
    arrays = load_arrays(session, "served", earlier[-1]) if earlier and version <= index.version else None
    if arrays is None:
        raise BuildError(
            f"index {index.name!r} has no model of version {version}: those kept (option keep_versions) are "
            f"of versions {', '.join(map(str, kept)) or 'none'}"
        )
    model = Model.from_arrays(arrays, float(index.options["label_weight"]))
    return model, load_arrays(session, "learner", earlier[-1])


# -- centers -------------------------------------------------------------------------------------------------


def _plan(
    index: Index,
    kind: str,
    model: Model,
    learner: Arrays | None,
    consumed: npt.NDArray[np.int64],
    rows: int,
    sample: Rows,
    metrics: dict[str, Any],
    learned: int | None = None,
    pending: npt.NDArray[Any] | None = None,
) -> Plan:
    held = sample.keys[training.held_out(index, sample) & (sample.labels.lengths > 0)]
    none = index.keys.empty()
    waiting = none if pending is None else pending
    progress = Progressed(rows, len(waiting), waiting, held, none)
    return Plan(
        kind,
        index.version,
        options_text(index),
        model,
        learner,
        index.version + 1 if learned is None else learned,
        choose_centers(index, model, rows, sample),
        consumed,
        rows,
        progress.to_arrays(index),
        metrics,
    )


def choose_centers(index: Index, model: Model, rows: int, sample: Rows) -> Centers:
    """Centers for `rows` rows, of which a sample is at hand: as many as the index should have."""
    if len(sample) == 0:
        return no_centers(index)
    fixed = index.options["centers"]
    target = min(len(sample), pool.target_centers(max(rows, 1), int(index.options["probes"]), fixed))
    codes = model.encode(sample.vectors, sample.labels)
    rng = np.random.default_rng([int(index.options["seed"]), index.version])
    made = pool.build(
        rng,
        codes,
        sample.vectors,
        bits=index.bits,
        centers=target,
        metric=index.distance,
        blend=index.blend(model.scale),
    )
    # Priorities were drawn for a stream of the sample's length.
    share = len(sample) / max(rows, len(sample))
    priorities = np.where(made.priorities < 0, made.priorities, made.priorities * share)
    chosen = made.centers
    return make_centers(
        index,
        index.next_center,
        sample.keys[chosen],
        codes[chosen],
        sample.vectors[chosen],
        priorities,
        index.version + 1,
    )
