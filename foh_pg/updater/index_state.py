"""An index as an updater sees it: loaded once, then carried from change to change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foh_pg.errors import FenceError
from foh_pg.learners import Learner
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import Centers, read_centers
from foh_pg.tables.index_row import IndexRow, read_index
from foh_pg.tables.model_state import load_state
from foh_pg.updater import training
from foh_pg.updater.handover import Handover
from foh_pg.updater.install import Change
from foh_pg.updater.served_model import Served, read_served


@dataclass(frozen=True)
class State:
    """What the database holds of an index at `index.version`."""

    index: IndexRow
    centers: Centers
    served: Served
    handover: Handover
    # None until a batch needs it.
    learner: Learner | None = None

    @property
    def learns(self) -> bool:
        """Whether anything can be learned: without labels only the mean, and only once."""
        return self.index.labels is not None or self.served.first

    @property
    def rows(self) -> int:
        """How many entries the lists have."""
        return int(self.centers.lengths.sum())

    def present(self, session: Session) -> State:
        """The same with the index as it is now: its options may have changed, its version must not have."""
        index = read_index(session)
        if index.version != self.index.version:
            raise FenceError(
                f"index {index.name!r} went from version {self.index.version} to {index.version} under this "
                "run: another updater is at work; nothing was written, run the command again"
            )
        return replace(self, index=index)

    def load_learner(self, session: Session) -> Learner:
        """The learner behind the model: the one that an earlier batch has left, or the one that was saved."""
        if self.learner is not None:
            return self.learner
        with session.snapshot():
            saved = load_state(session, "learner", self.served.learned)
        return training.new_learner(self.index) if saved is None else training.restored(self.index, saved)

    def after(self, change: Change) -> State:
        """What the database holds once a change is installed."""
        index = replace(self.index, version=change.version, next_center=change.next_center)
        return State(index, change.after, change.served, change.handover, change.learner or self.learner)


def load(session: Session, run: Run, handover: Handover) -> State:
    """Read all else that an updater needs of an index, in one snapshot."""
    with run.phase("load"), session.snapshot():
        index = read_index(session)
        return State(index, read_centers(session, index), read_served(session, index), handover)
