"""The plan of a filling and how far it has come, saved so that an interrupted filling can go on.

Both stand in foh.model_state: the plan, written once, and the position, written with every piece.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.flat import values_of
from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.runs.session import Session
from foh_pg.tables.centers import SAMPLE, Centers, make_centers, no_centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model_state import PRESENT, UNFINISHED, delete_state, load_state, save_state
from foh_pg.updater import training
from foh_pg.updater.handover import Handover

ORPHANS = "DELETE FROM {list} l WHERE NOT EXISTS (SELECT FROM {center} c WHERE c.center = l.center)"


@dataclass(frozen=True)
class Plan:
    """What a filling will make, decided before the first row is placed."""

    # What it is for; a run of another kind does not go on with it.
    kind: str
    # The version of the index that it replaces.
    version: int
    # The options of the index, as JSON: with other ones the plan is void.
    options: str
    # model, learner: as in Change; geometry is new with every filling, so the model is too.
    model: Model
    learner: Learner | None
    # With ids of their own, from `first` on.
    centers: Centers
    # Entries of the stream that were there before the first row was read.
    consumed: npt.NDArray[np.int64]
    # About how many rows there are, for the progress bar.
    rows: int
    # handover, metrics: as in Change.
    handover: Handover
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass
class Position:
    """How far a filling is."""

    after: Any
    done: int
    lengths: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    sample_keys: npt.NDArray[Any]
    sample_codes: npt.NDArray[np.uint8]
    sampled: npt.NDArray[np.int64]
    # Keys of the far rows so far.
    far: KeyArray

    @classmethod
    def start(cls, plan: Plan) -> Position:
        count = len(plan.centers)
        centers = plan.centers
        return cls(
            None,
            0,
            np.zeros(count, dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            centers.sample_keys.copy(),
            centers.sample_codes.copy(),
            centers.sampled.copy(),
            centers.sample_keys[:0, 0],
        )


def options_text(index: IndexRow) -> str:
    return json.dumps([index.options, index.labels], sort_keys=True)


def save_plan(session: Session, index: IndexRow, plan: Plan) -> None:
    saved = {
        **values_of(plan),
        "learner": plan.learner and plan.learner.saved(),
        "handover": plan.handover.saved(index),
        # Lists and samples are still empty, so only the places of the centers are saved.
        "centers": {name: getattr(plan.centers, name) for name in ("areas", "ids", "area", "bits")},
    }
    for name in UNFINISHED:
        delete_state(session, name, PRESENT)
    save_state(session, "plan", PRESENT, saved)


def load_plan(session: Session, index: IndexRow, kind: str) -> tuple[Plan, Position] | None:
    """The plan that was left unfinished, and how far it came; None where none fits the index as it is now."""
    saved = load_state(session, "plan", PRESENT)
    wanted = (kind, index.version, options_text(index))
    if saved is None or (saved["kind"], saved["version"], saved["options"]) != wanted:
        return None
    places, centers = saved["centers"], no_centers(index)
    if len(places["ids"]):
        levels = clustering.BitLevels(places["areas"], places["bits"], places["area"])
        centers = make_centers(index, int(places["ids"][0]), levels, index.version + 1)
    made = {
        "model": Model.restored(
            saved["model"], float(index.options["label_weight"]), index.labels is not None
        ),
        "learner": saved["learner"] and training.restored(index, saved["learner"]),
        "handover": Handover.restored(index, saved["handover"]),
        "centers": centers,
    }
    plan = Plan(**{**saved, **made})
    return plan, load_position(session, index) or Position.start(plan)


def save_position(session: Session, index: IndexRow, position: Position) -> None:
    keys = {
        "sample_keys": index.keys.pack(position.sample_keys[_within(position.sampled)]),
        "far": index.keys.pack(position.far),
    }
    save_state(session, "position", PRESENT, {**values_of(position), **keys})


def load_position(session: Session, index: IndexRow) -> Position | None:
    saved = load_state(session, "position", PRESENT)
    if saved is None:
        return None
    sampled = saved["sampled"]
    sample_keys = np.zeros((len(sampled), SAMPLE), dtype=index.keys.dtype)
    sample_keys[_within(sampled)] = index.keys.unpack(saved["sample_keys"])
    return Position(**{**saved, "sample_keys": sample_keys, "far": index.keys.unpack(saved["far"])})


def _within(sampled: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which places of samples are filled."""
    return np.arange(SAMPLE) < sampled[:, None]


def discard_plan(session: Session) -> None:
    """Forget an interrupted filling, with the lists it left."""
    with session.write():
        session.execute(ORPHANS)
        for name in UNFINISHED:
            delete_state(session, name, PRESENT)
