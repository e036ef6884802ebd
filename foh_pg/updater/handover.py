"""What every run hands to the next one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model_state import PRESENT, Arrays, load_arrays

# Recent held-out rows that models are compared on, and rows that wait to be learned from.
HELD_OUT = 1000
PENDING = 50_000


@dataclass(frozen=True)
class Handover:
    """What a run saves for the next one."""

    # Rows taken in so far: they decide when the first model is due.
    rows_seen: int
    # Rows that were placed but not yet learned from.
    waiting: int
    # Their keys; only the last ones where there are very many.
    pending: KeyArray
    # Keys of recent rows that never train.
    held_out: KeyArray
    # Keys deleted or changed since, that the learner still has to forget.
    forgotten: KeyArray
    # How many rows have got quite another embedding since all rows were placed.
    replaced: int = 0
    # The option label_weight by which the rows were encoded; None if no row was encoded yet.
    label_weight: float | None = None

    def weighed_otherwise(self, index: IndexRow) -> bool:
        """Whether label_weight, on which every code depends, was altered since the rows were encoded."""
        return self.label_weight not in (None, float(index.options["label_weight"]))

    def to_arrays(self, index: IndexRow) -> Arrays:
        return {
            "rows_seen": np.array(self.rows_seen),
            "waiting": np.array(self.waiting),
            **index.keys.pack("pending", self.pending[-PENDING:]),
            **index.keys.pack("held_out", self.held_out[-HELD_OUT:]),
            **index.keys.pack("forgotten", self.forgotten),
            "replaced": np.array(self.replaced),
            "label_weight": np.array(float(index.options["label_weight"])),
        }

    @classmethod
    def from_arrays(cls, index: IndexRow, arrays: Arrays) -> Handover:
        pending, held_out, forgotten = (
            index.keys.unpack(name, arrays) for name in ("pending", "held_out", "forgotten")
        )
        counts = int(arrays["rows_seen"]), int(arrays["waiting"])
        replaced = int(arrays["replaced"]) if "replaced" in arrays else 0
        return cls(*counts, pending, held_out, forgotten, replaced, float(arrays["label_weight"]))

    @classmethod
    def none(cls, index: IndexRow) -> Handover:
        """What is known before the first row."""
        keys = index.keys.empty()
        return cls(0, 0, keys, keys, keys)


def load_handover(session: Session, index: IndexRow) -> Handover:
    arrays = load_arrays(session, "progress", PRESENT)
    return Handover.none(index) if arrays is None else Handover.from_arrays(index, arrays)
