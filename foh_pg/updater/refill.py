"""All rows read, encoded and placed again, in lists that are new; and no rows, where a table was emptied."""

from __future__ import annotations

from dataclasses import replace

from foh_pg import clustering
from foh_pg.learners import Learner
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import no_centers
from foh_pg.updater.batch import Batch, read_batch
from foh_pg.updater.fill import fill
from foh_pg.updater.handover import Handover
from foh_pg.updater.index_state import State
from foh_pg.updater.install import Change
from foh_pg.updater.learn import Learned, learn
from foh_pg.updater.plan import handover_of, make_plan, survey, with_geometry
from foh_pg.updater.served_model import Placed
from foh_pg.updater.train import still_fits, train
from foh_pg.updater.weighing import hold_queries

# An index of at most YOUNG_ROWS rows is placed again as a whole once it should have OUTGROWN times
# as many centers as it has. That is so when the table has become four times as large.
YOUNG_ROWS = 50_000
OUTGROWN = 2.5

ANOTHER_MODEL = (
    "what was learned does not fit the embeddings any more, as after a change of the embedding model, so the "
    "index has learned again from all rows"
)


def must_refill(state: State, batch: Batch) -> bool:
    """Whether a batch cannot be merged, or is better not merged, into the lists as they are."""
    return batch.resync or _starts(state, batch) or _outgrew(state, batch)


def _starts(state: State, batch: Batch) -> bool:
    """Whether there are now enough rows for the first model.

    All rows are then placed again, with centers and thresholds made for them. Those that served until then
    were made before there was any row.
    """
    seen = state.handover.rows_seen + len(batch.rows)
    return state.served.first and (batch.due or seen >= int(state.index.options["learn_rows"]))


def _outgrew(state: State, batch: Batch) -> bool:
    """Whether the centers were chosen among so few rows that all rows are better placed again.

    A small index grows fast, and splits alone follow it slowly. A large one is left to its splits: to read
    all of it would make one update in many slow.
    """
    rows, centers = state.rows + len(batch.rows), len(state.centers)
    if state.served.first or centers == 0 or rows > YOUNG_ROWS:
        return False
    return min(rows, clustering.target_centers(rows, state.index.options["centers"])) > OUTGROWN * centers


def refill(session: Session, run: Run, state: State, batch: Batch, learned: Learned) -> Change:
    """Learn from all that is in the stream, then read, encode and place the whole source."""
    run.metrics.update(learned.metrics)
    state, size = learned.taught(state), batch.size
    while batch.more:
        state, batch = read_batch(session, run, state, size, after=int(batch.seqs[-1]))
        learned = learn(session, run, state, batch)
        run.metrics.update(learned.metrics)
        state = learned.taught(state)
    learner: Learner | None = state.load_learner(session)
    with run.phase("sample"), session.snapshot():
        state = state.present(session)
        seen = survey(session, state.index)
    index, model = state.index, state.served.model
    handover = replace(state.handover, rows_seen=seen.rows, replaced=0)
    if model.trained and not still_fits(index, seen.sample, model):
        with run.phase("learn"):
            trained = train(index, seen.to_learn(), seen.rows, run)
        run.note(ANOTHER_MODEL)
        run.metrics.update(trained.metrics)
        model, learner, handover = trained.model, trained.learner, handover_of(index, seen, trained.pending)
    with run.phase("centers"):
        model = with_geometry(index, model, seen.sample)
        kept = learner if learner is not None and learner.started else None
        plan = make_plan(index, "full", model, kept, seen, handover, {})
    asking = hold_queries(run, index, plan.model, seen.sample, plan.centers.levels)
    return fill(session, run, index, plan, asking)


def empty(session: Session, run: Run, state: State, batch: Batch, learned: Learned) -> Change:
    """The change where the table was emptied: nothing of the lists is left, and the learner keeps no row."""
    index = state.index
    learner = learned.learner or state.load_learner(session)
    if learner.started:
        for kept in (getattr(learner, "reservoir_", None), learner.warm_rows_):
            if kept is not None and len(kept):
                learner.forget_keys(kept.keys)
    run.rows += len(batch.seqs)
    # Entries written since the TRUNCATE name centers that are deleted here.
    placed = Placed(index.version + 1, index.next_center)
    return Change(
        index=index,
        after=no_centers(index),
        merged=None,
        served=replace(state.served, placed=placed, far=index.keys.empty()),
        learner=learner if learner.started else None,
        handover=Handover.none(index),
        consumed=batch.seqs,
        metrics={"rows": len(batch.seqs), "stale": 0.0},
    )
