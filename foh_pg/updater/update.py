"""`foh-pg update`: from the stream to better hash functions and up-to-date lists."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foh_pg import pool
from foh_pg.errors import BuildError, FenceError
from foh_pg.learners import Learner
from foh_pg.tables.centers import Centers, no_centers, read_centers
from foh_pg.tables.index_row import IndexRow, find_index, read_index
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model import Model
from foh_pg.tables.model_state import load_arrays
from foh_pg.tables.run import Progress, Run, recorded
from foh_pg.tables.session import Session, Target, open_session
from foh_pg.tables.source import Rows, join_rows
from foh_pg.updater import training
from foh_pg.updater.batch import Batch, handover_after, read_batch, with_rows
from foh_pg.updater.follow import follow
from foh_pg.updater.handover import Handover, load_handover, shape_of
from foh_pg.updater.install import Installation, Placed, install
from foh_pg.updater.merge import Merging, merge
from foh_pg.updater.plan import fill_again
from foh_pg.updater.pull import pull
from foh_pg.updater.served_model import load_present
from foh_pg.updater.unfinished import discard_plan
from foh_pg.updater.weighing import outdated, read_sample_to_weigh, with_ranking

BATCH_SIZE = 2000

# At most this many deleted and changed keys wait for the next stage; with more, the learner forgets at once.
FORGOTTEN = 10_000

RESYNC = "SELECT EXISTS (SELECT FROM {stream} t WHERE t.op = 'r' AND NOT t.fresh)"
# A run takes only entries that it finds when it begins: rows that keep coming would keep it busy for ever.
LAST = "SELECT pg_catalog.pg_is_in_recovery(), max(t.seq) FROM {stream} t"
WAITING = """
SELECT pg_catalog.pg_is_in_recovery(), EXISTS (SELECT FROM {stream} t WHERE t.seq <= %(last)s::bigint)
"""
# How long the oldest entry has waited; null where there is none.
LAG = """
SELECT extract(epoch FROM pg_catalog.clock_timestamp() - (
    SELECT t.written_at FROM {stream} t ORDER BY t.seq LIMIT 1))::float8
"""
# An index of at most YOUNG_ROWS rows is placed anew once it should have OUTGROWN times as many centers as it
# has. That is so when the table has become four times as large.
YOUNG_ROWS = 50_000
OUTGROWN = 2.5

PLANNED = "SELECT EXISTS (SELECT FROM foh.model_state WHERE index = {id} AND version = 0 AND name = 'plan')"


def update(
    target: Target,
    index: str,
    *,
    batch_size: int = BATCH_SIZE,
    max_seconds: float | None = None,
    full: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Merge the stream of an index into its lists, batch by batch, and learn from it on the way.

    Parameters
    ----------
    target : str, connection or None
        A DSN, an idle connection, or None for what libpq's environment variables say.
    index : str
        Name of the index.
    batch_size : int
        Entries of the stream per transaction.
    max_seconds : float, optional
        No batch is begun after that; `Run.more` says whether entries are left.
    full : bool
        Encode everything again from the source, and choose new centers.
    progress : callable, optional
        Called with phase, done and total.
    """
    if batch_size < 1:
        raise BuildError(f"batch_size is {batch_size}, it must be at least 1")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    with open_session(target) as session:
        found = find_index(session, index)
        session.lock(found.id, found.name)
        found = read_index(session)
        if found.status != "ready":
            raise BuildError(f"index {index!r} is not built yet: run foh-pg build {index}")
        run = Run(found.name, "update", found.version, found.version, progress=progress)
        with recorded(session, run):
            if session.one(PLANNED)[0]:
                run.note("discarded a build that was interrupted")
                discard_plan(session)
            _update(session, run, found, batch_size, deadline, full)
        return run


def drain(session: Session, run: Run) -> None:
    """Merge what was written while a filling was at work: those entries name centers that are gone."""
    index = read_index(session)
    pull(session, run)
    if int(index.options["neighbors"]) == 0 and not session.one(RESYNC)[0]:
        _update(session, run, index, BATCH_SIZE, None, full=False)


def _update(
    session: Session, run: Run, index: IndexRow, batch_size: int, deadline: float | None, full: bool
) -> None:
    work: Work | None = None
    shape = load_handover(session, index).shape
    if shape not in ("", shape_of(index)):
        run.note("homes, neighbors or label_weight of the index were changed: everything is encoded again")
        full = True
    pull(session, run)
    follow(session, run)
    last = session.of_primary(LAST)
    while full or session.of_primary(WAITING, {"last": last}):
        run.more = not full
        if deadline is not None and time.monotonic() >= deadline:
            return
        run.begin(session)
        if work is None:
            (run.metrics["lag_seconds"],) = session.one(LAG)
            work = Work.load(session, run)
        # Which rows are nearest to a center can only be told from all rows.
        full = full or int(index.options["neighbors"]) > 0
        if not full:
            work.step(batch_size)
        if full or work.resync:
            work.fill_all(batch_size)
            run.more = False
            drain(session, run)
            return
        run.more = False


@dataclass
class Work:
    """What an updater keeps between batches: the same as the database holds at `index.version`."""

    session: Session
    run: Run
    index: IndexRow
    centers: Centers
    model: Model
    learned: int
    first: bool
    placed: Placed
    handover: Handover
    learner: Learner | None = None
    resync: bool = False

    @classmethod
    def load(cls, session: Session, run: Run) -> Work:
        with run.phase("load"), session.snapshot():
            index = read_index(session)
            present = load_present(session, index)
            return cls(
                session=session,
                run=run,
                index=index,
                centers=read_centers(session, index),
                model=present.model,
                learned=present.learned,
                first=present.first,
                placed=present.placed,
                handover=load_handover(session, index),
            )

    @property
    def learns(self) -> bool:
        """Whether anything can be learned: without labels only the mean, and only once."""
        return self.index.labels is not None or self.first

    # -- one batch -----------------------------------------------------------------------------------------

    def step(self, batch_size: int) -> None:
        with self.run.phase("read"):
            batch = self._read(batch_size)
        if batch.resync or self._starts(batch) or self._outgrew(batch):
            self.resync = True
        elif batch.truncated:
            self._truncate(batch)
        elif len(batch.seqs):
            self._merge(batch)

    def _starts(self, batch: Batch) -> bool:
        """Whether there are now enough rows for the first model.

        All rows are then placed anew, with centers and thresholds made for them. Those that served until
        then were made before there was any row.
        """
        if not self.first or batch.truncated:
            return False
        seen = self.handover.rows_seen + len(batch.rows)
        return batch.due or seen >= int(self.index.options["learn_rows"])

    def _outgrew(self, batch: Batch) -> bool:
        """Whether the centers were chosen among so few rows that all are better placed anew.

        A small index grows fast, and splits alone follow it slowly. A large one is left to its splits: to
        read all of it would make one update in many slow.
        """
        rows = int(self.centers.lengths.sum()) + len(batch.rows)
        if self.first or batch.truncated or len(self.centers) == 0 or rows > YOUNG_ROWS:
            return False
        target = min(rows, pool.target_centers(rows, self.index.options["centers"]))
        return target > OUTGROWN * len(self.centers)

    def _read(self, batch_size: int) -> Batch:
        batch = read_batch(self.session, batch_size, self.handover, self.learns)
        self._check(batch)
        return batch

    def _check(self, batch: Batch) -> None:
        if batch.index.version != self.index.version:
            raise FenceError(
                f"index {self.index.name!r} went from version {self.index.version} to {batch.index.version} "
                "under this run: another updater is at work; nothing was written, run the command again"
            )
        self.index = batch.index

    def _merge(self, batch: Batch) -> None:
        run, index = self.run, self.index
        stage = self._stage(batch)
        budget = index.options["budget"]
        work = Merging(
            self.session,
            run,
            with_rows(self.session, batch, self._named_anew(batch, stage)),
            self.centers,
            stage.model,
            stage.new,
            None if budget is None else max(0, int(budget) - run.rows_encoded),
        )
        merged = merge(work)
        run.rows += len(batch.seqs)
        run.lists += merged.opened
        run.rows_encoded += merged.encoded
        run.stale = _staleness(merged.centers)
        run.metrics.update(stage.metrics)
        if merged.moved:
            run.metrics["moved"] = run.metrics.get("moved", 0) + merged.moved
        anew = Placed(index.version + 1, index.next_center)
        self._install(
            batch,
            merged.centers,
            stage,
            handover_after(
                batch,
                self.handover,
                learns=self.learns,
                studied=stage.studied,
                forgot=stage.learner is not None,
            ),
            lambda session: merged.write(session, index),
            self.placed if len(self.centers) else anew,
        )

    def _named_anew(self, batch: Batch, stage: Stage) -> Rows:
        """Rows placed earlier whose labels came into the dictionary only now: their signatures lack them."""
        before, labels = self.model.numbers, batch.pending.labels
        new = [name not in before and name in stage.model.numbers for name in labels.values.tolist()]
        counts = np.concatenate([[0], np.cumsum(np.array(new, dtype=np.int64))])[labels.bounds]
        return batch.pending.take(np.diff(counts) > 0)

    def _install(
        self,
        batch: Batch,
        after: Centers,
        stage: Stage,
        handover: Handover,
        write: Any,
        placed: Placed,
    ) -> None:
        new_ids = after.ids[after.ids >= self.index.next_center]
        next_center = int(new_ids.max()) + 1 if len(new_ids) else self.index.next_center
        version = self.index.version + 1
        learned = version if stage.new else self.learned
        new = Installation(
            index=self.index,
            before=self.centers,
            after=after,
            model=stage.model,
            learned=learned,
            learner=stage.learner.state() if stage.learner is not None else None,
            handover=handover.to_arrays(self.index),
            next_center=next_center,
            consumed=batch.seqs,
            write=write,
            placed=placed,
            metrics={**stage.metrics, "rows": len(batch.seqs), "stale": _staleness(after)},
        )
        install(self.session, self.run, new)
        self.index = replace(self.index, version=version, next_center=next_center)
        self.centers, self.model, self.learned = after, stage.model, learned
        self.first = self.first and not stage.new
        self.placed, self.handover = placed, handover
        self.learner = stage.learner or self.learner

    # -- learning ------------------------------------------------------------------------------------------

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

    # -- odd states ----------------------------------------------------------------------------------------

    def _truncate(self, batch: Batch) -> None:
        """The table was emptied: nothing of the lists is left, and the learner keeps no row of it."""
        stage = Stage(self.model, False, False, None, {})
        none = self.index.keys.empty()
        learner = self._load_learner()
        if learner.started:
            for kept in (getattr(learner, "reservoir_", None), learner.warm_rows_):
                if kept is not None and len(kept):
                    learner.forget_keys(kept.keys)
            stage = replace(stage, learner=learner)
        self.run.rows += len(batch.seqs)

        def write(session: Session) -> None:
            session.execute("DELETE FROM {list}")
            session.execute("DELETE FROM {item}")

        handover = Handover(0, 0, none, none, none)
        # Entries written since the TRUNCATE name centers that are deleted here.
        placed = Placed(self.index.version + 1, self.index.next_center)
        self._install(batch, no_centers(self.index), stage, handover, write, placed)

    def fill_all(self, batch_size: int) -> None:
        """Learn from what is in the stream, then read, encode and place the whole source."""
        with self.run.phase("read"):
            first = self._read(1)
        if first.truncated:
            self._truncate(first)
        learner, after, more = None, 0, True
        while more:
            with self.run.phase("read"):
                batch = read_batch(self.session, batch_size, self.handover, self.learns, after)
            self._check(batch)
            stage = self._stage(batch)
            forgot = stage.learner is not None
            self.handover = handover_after(
                batch, self.handover, learns=self.learns, studied=stage.studied, forgot=forgot
            )
            self.model, self.first = stage.model, self.first and not stage.new
            learner = stage.learner or learner
            self.run.metrics.update(stage.metrics)
            after, more = int(batch.seqs[-1]) if batch.more else after, batch.more
        learner = learner or self._load_learner()
        state = learner.state() if learner.started else None
        fill_again(self.session, self.run, self.index, self.model, state, self.handover)


@dataclass(frozen=True)
class Stage:
    """The model to merge under; whether it is new, and whether the learner has studied the pending rows."""

    model: Model
    new: bool
    studied: bool
    learner: Learner | None
    metrics: dict[str, Any]


def _staleness(centers: Centers) -> float:
    total = int(centers.lengths.sum())
    return float((centers.stale * centers.lengths).sum() / total) if total else 0.0
