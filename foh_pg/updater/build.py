"""The first fill of an index, a new model for it, and the return to an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from foh_pg.errors import BuildError, StateError
from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.runs.run import Progress, Run, recorded
from foh_pg.runs.session import Session, Target, open_session
from foh_pg.tables.index_row import IndexRow, find_index, read_index
from foh_pg.tables.model_state import load_state
from foh_pg.updater import training
from foh_pg.updater.fill import fill
from foh_pg.updater.gathering import Gathered
from foh_pg.updater.install import install
from foh_pg.updater.plan import Survey, handover_of, make_plan, survey, with_geometry
from foh_pg.updater.pull import pull
from foh_pg.updater.served_model import FIRST, read_served
from foh_pg.updater.train import train
from foh_pg.updater.unfinished import Plan, load_plan
from foh_pg.updater.update import Limits, take_in, written_meanwhile
from foh_pg.updater.weighing import hold_queries, weigh_by_sample

# The index as it was read, the plan of a filling, and the queries by which a ranking is chosen.
Made = tuple[IndexRow, Plan, Gathered | None]
# Reads the index and a sample of its rows, and makes the plan from them.
MakePlan = Callable[[Session, Run], Made]

# Versions whose models are kept: not the very first, made before any row.
MODELS = """
SELECT DISTINCT m.learned FROM foh.model m WHERE m.index = {id} AND m.learned > %(first)s ORDER BY m.learned
"""


def build(target: Target, index: str, *, progress: Progress | None = None) -> Run:
    """Place all rows of a table for the first time, with hash functions trained on a sample of them.

    `target` is a DSN, an idle connection, or None for what libpq's environment variables say. The table can
    be written to meanwhile. A build that was interrupted goes on where it was.
    """
    with open_session(target) as session:
        return _train_and_fill(session, index, "build", progress)


def rebuild(target: Target, index: str, *, progress: Progress | None = None) -> Run:
    """Train a new model and place all rows by it, beside what is served until the switch."""
    with open_session(target) as session:
        return _train_and_fill(session, index, "rebuild", progress)


def rollback(target: Target, index: str, to: int, *, progress: Progress | None = None) -> Run:
    """Put the hash functions of an earlier version back; every row is encoded again."""
    with open_session(target) as session:
        found = _locked(session, index)
        # Checked before a run begins: that a version is unknown is no failure of the index, and not recorded.
        _learned(session, found, to)
        run = Run(found.name, "rollback", found.version, found.version, progress=progress)
        with recorded(session, run):
            run.begin(session)
            _fill(session, run, found, f"rollback {to}", partial(_plan_rollback, to))
        return run


def _locked(session: Session, name: str) -> IndexRow:
    index = find_index(session, name)
    session.lock(index.id, index.name)
    return read_index(session)


def _train_and_fill(session: Session, name: str, kind: str, progress: Progress | None) -> Run:
    index = _locked(session, name)
    if kind == "build" and index.status == "ready" and index.version > 1:
        raise BuildError(
            f"index {name!r} is built already: foh-pg update {session.names['name']} keeps it up to date, "
            f"foh-pg build {session.names['name']} --again trains it again"
        )
    run = Run(index.name, kind, index.version, index.version, progress=progress)
    with recorded(session, run):
        run.begin(session)
        _fill(session, run, index, kind, partial(_plan_build, kind))
    return run


def _fill(session: Session, run: Run, index: IndexRow, kind: str, make: MakePlan) -> None:
    """Fill an index by a plan that was left unfinished, or by a new one, and take in what came meanwhile."""
    left = load_plan(session, index, kind)
    if left is not None:
        run.note("going on with a build that was interrupted")
        plan, position = left
        if plan.model.ranking.rows == 0 and len(plan.centers):
            # What the rows that are placed already were to the queries is not known any more.
            model = weigh_by_sample(session, run, index, plan.model, plan.centers, plan.rows)
            plan = replace(plan, model=model)
        change = fill(session, run, index, plan, position=position)
    else:
        pull(session, run, keys_only=True)
        change = fill(session, run, *make(session, run))
    install(session, run, change)
    take_in(session, run, change.handover, written_meanwhile(session, run), Limits())


def _survey(session: Session, run: Run) -> tuple[IndexRow, Survey]:
    with run.phase("sample"), session.snapshot():
        index = read_index(session)
        return index, survey(session, index)


def _plan_build(kind: str, session: Session, run: Run) -> Made:
    """The plan of a build: hash functions and geometry are learned from a sample."""
    index, seen = _survey(session, run)
    if seen.rows == 0:
        run.note(f"no row of {index.source} has an embedding yet: each is found as soon as it has one")
    with run.phase("learn"):
        trained = train(index, seen.to_learn(), seen.rows, run)
    with run.phase("centers"):
        model = with_geometry(index, trained.model, seen.sample)
        handover = handover_of(index, seen, trained.pending)
        plan = make_plan(index, kind, model, trained.learner, seen, handover, trained.metrics)
    run.metrics.update(trained.metrics)
    return index, plan, hold_queries(run, index, plan.model, seen.sample, plan.centers.levels)


def _plan_rollback(to: int, session: Session, run: Run) -> Made:
    """The plan of a return to an earlier version: all of its model, with the geometry that it had.

    The geometry is new where the model had none, or another number of bits.
    """
    index, seen = _survey(session, run)
    with session.snapshot():
        model, learner = _earlier(session, index, to)
    with run.phase("centers"):
        if model.geometry is None or model.geometry.bits != index.geometry:
            model = with_geometry(index, model, seen.sample)
        handover, metrics = handover_of(index, seen), {"rolled_back_to": to}
        plan = make_plan(index, f"rollback {to}", model, learner, seen, handover, metrics)
    return index, plan, None


# -- earlier models ------------------------------------------------------------------------------------------


def _earlier(session: Session, index: IndexRow, version: int) -> tuple[Model, Learner | None]:
    """The hash functions that a version served, and the state of the learner that made them."""
    learned = _learned(session, index, version)
    served = read_served(session, index)
    model = served.model if learned == served.learned else _archived(session, index, learned)
    state = load_state(session, "learner", learned)
    return model, None if state is None else training.restored(index, state)


def _archived(session: Session, index: IndexRow, learned: int) -> Model:
    """A model that is no longer served."""
    saved = load_state(session, "served", learned)
    if saved is None:
        raise StateError(f"the model that version {learned} of index {index.name!r} learned was deleted")
    return Model.restored(saved, float(index.options["label_weight"]), index.labels is not None)


def _learned(session: Session, index: IndexRow, version: int) -> int:
    """The version that learned what a version served: itself, or the last one before it that learned."""
    kept: list[int] = [learned for (learned,) in session.rows(MODELS, {"first": FIRST})]
    earlier = [learned for learned in kept if learned <= version]
    if not earlier or version > index.version:
        known = f"those kept are of versions {', '.join(map(str, kept))}" if kept else "none is kept"
        raise BuildError(
            f"index {index.name!r} has no model of version {version}: {known} (option keep_versions)"
        )
    return earlier[-1]
