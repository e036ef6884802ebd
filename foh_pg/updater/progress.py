"""What every run hands to the next one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foh_pg.updater.description import Index
from foh_pg.updater.keys import KeyArray
from foh_pg.updater.session import Session
from foh_pg.updater.state import PRESENT, Arrays, load_arrays

# Recent held-out rows that models are compared on.
HELD_OUT = 1000


@dataclass(frozen=True)
class Progressed:
    """Attributes
    ----------
    rows_seen : int
        Rows of the stream so far: what the sample of centers is a sample of.
    pending : array
        Keys of rows that were placed but not yet learned from.
    held_out : array
        Keys of recent rows that never train.
    forgotten : array
        Keys deleted or changed since, that the learner still has to forget.
    """

    rows_seen: int
    pending: KeyArray
    held_out: KeyArray
    forgotten: KeyArray

    def to_arrays(self, index: Index) -> Arrays:
        return {
            "rows_seen": np.array(self.rows_seen),
            "pending": index.keys.plain(self.pending),
            "held_out": index.keys.plain(self.held_out[-HELD_OUT:]),
            "forgotten": index.keys.plain(self.forgotten),
        }


def load_progress(session: Session, index: Index) -> Progressed:
    arrays = load_arrays(session, "progress", PRESENT)
    if arrays is None:
        none = index.keys.empty()
        return Progressed(0, none, none, none)
    pending, held_out, forgotten = (
        index.keys.restore(arrays[name]) for name in ("pending", "held_out", "forgotten")
    )
    return Progressed(int(arrays["rows_seen"]), pending, held_out, forgotten)
