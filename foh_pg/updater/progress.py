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
    """

    rows_seen: int
    pending: KeyArray
    held_out: KeyArray

    def to_arrays(self, index: Index) -> Arrays:
        return {
            "rows_seen": np.array(self.rows_seen),
            "pending": index.keys.plain(self.pending),
            "held_out": index.keys.plain(self.held_out[-HELD_OUT:]),
        }


def load_progress(session: Session, index: Index) -> Progressed:
    arrays = load_arrays(session, "progress", PRESENT)
    if arrays is None:
        return Progressed(0, index.keys.empty(), index.keys.empty())
    return Progressed(
        int(arrays["rows_seen"]),
        index.keys.restore(arrays["pending"]),
        index.keys.restore(arrays["held_out"]),
    )
