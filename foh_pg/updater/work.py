"""The work of an updater, batch after batch: read, learn, merge, install."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foh_pg import clustering
from foh_pg.errors import FenceError
from foh_pg.tables.centers import Centers, no_centers, read_centers
from foh_pg.tables.index_row import read_index
from foh_pg.tables.keys import KeyArray, member
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.tables.source import Rows
from foh_pg.updater.batch import Batch, handover_after, read_batch, with_rows
from foh_pg.updater.handover import Handover, load_handover
from foh_pg.updater.install import Installation, Placed, install
from foh_pg.updater.merge import Merging, merge
from foh_pg.updater.plan import fill_again
from foh_pg.updater.served_model import load_present
from foh_pg.updater.studying import Stage, Studying

# An index of at most YOUNG_ROWS rows is placed anew once it should have OUTGROWN times as many centers as it
# has. That is so when the table has become four times as large.
YOUNG_ROWS = 50_000
OUTGROWN = 2.5


@dataclass(kw_only=True)
class Work(Studying):
    """What an updater keeps between batches: the same as the database holds at `index.version`."""

    placed: Placed
    # Keys of the far rows: see foh_pg.tables.source.
    far: KeyArray
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
                far=present.far,
                handover=load_handover(session, index),
            )

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
        target = min(rows, clustering.target_centers(rows, self.index.options["centers"]))
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
        self, batch: Batch, after: Centers, stage: Stage, handover: Handover, write: Any, placed: Placed
    ) -> None:
        new_ids = after.ids[after.ids >= self.index.next_center]
        next_center = int(new_ids.max()) + 1 if len(new_ids) else self.index.next_center
        version = self.index.version + 1
        stays = self.far[~member(self.far, batch.keys)]
        far = self.far[:0] if batch.truncated else np.concatenate([stays, batch.far])
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
            far=far,
            metrics={**stage.metrics, "rows": len(batch.seqs), "stale": _staleness(after)},
        )
        install(self.session, self.run, new)
        self.index = replace(self.index, version=version, next_center=next_center)
        self.centers, self.model, self.learned = after, stage.model, learned
        self.first = self.first and not stage.new
        self.placed, self.handover, self.far = placed, handover, far
        self.learner = stage.learner or self.learner

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


def _staleness(centers: Centers) -> float:
    total = int(centers.lengths.sum())
    return float((centers.stale * centers.lengths).sum() / total) if total else 0.0
