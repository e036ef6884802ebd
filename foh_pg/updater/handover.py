"""What every run hands to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foh_pg.arrays.flat import values_of
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model_state import PRESENT, load_state

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

    def saved(self, index: IndexRow) -> dict[str, Any]:
        return {
            **values_of(self),
            "pending": index.keys.pack(self.pending[-PENDING:]),
            "held_out": index.keys.pack(self.held_out[-HELD_OUT:]),
            "forgotten": index.keys.pack(self.forgotten),
            "label_weight": float(index.options["label_weight"]),
        }

    @classmethod
    def restored(cls, index: IndexRow, saved: Mapping[str, Any]) -> Handover:
        keys = {name: index.keys.unpack(saved[name]) for name in ("pending", "held_out", "forgotten")}
        return cls(**{**saved, **keys})

    @classmethod
    def none(cls, index: IndexRow) -> Handover:
        """What is known before the first row."""
        keys = index.keys.empty()
        return cls(0, 0, keys, keys, keys)


def load_handover(session: Session, index: IndexRow) -> Handover:
    saved = load_state(session, "progress", PRESENT)
    return Handover.none(index) if saved is None else Handover.restored(index, saved)
