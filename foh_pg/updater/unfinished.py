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
from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.runs.session import Session
from foh_pg.tables.centers import SAMPLE, Centers, make_centers, no_centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model_state import PRESENT, UNFINISHED, Arrays, delete_arrays, load_arrays, save_arrays
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
    arrays: Arrays = {
        "head": np.array(json.dumps([plan.kind, plan.version, plan.options, plan.rows, plan.metrics])),
        "consumed": plan.consumed,
    }
    arrays.update({f"model/{name}": array for name, array in plan.model.to_arrays().items()})
    arrays.update({f"progress/{name}": array for name, array in plan.handover.to_arrays(index).items()})
    # Lists and samples are still empty, so only the places of the centers are saved.
    for name in ("areas", "ids", "area", "bits"):
        arrays[f"centers/{name}"] = getattr(plan.centers, name)
    for name in UNFINISHED:
        delete_arrays(session, name, PRESENT)
    save_arrays(session, "plan", PRESENT, arrays)
    if plan.learner is not None:
        save_arrays(session, "plan_learner", PRESENT, plan.learner.state())


def load_plan(session: Session, index: IndexRow, kind: str) -> tuple[Plan, Position] | None:
    """The plan that was left unfinished, and how far it came; None where none fits the index as it is now."""
    arrays = load_arrays(session, "plan", PRESENT)
    if arrays is None:
        return None
    found, version, options, rows, metrics = json.loads(str(arrays["head"]))
    if (found, version, options) != (kind, index.version, options_text(index)):
        return None

    def below(name: str) -> Arrays:
        return {key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)}

    places = below("centers/")
    centers = no_centers(index)
    if len(places["ids"]):
        first = int(places["ids"][0])
        levels = clustering.BitLevels(places["areas"], places["bits"], places["area"])
        centers = make_centers(index, first, levels, version + 1)
    learner = load_arrays(session, "plan_learner", PRESENT)
    plan = Plan(
        kind=found,
        version=version,
        options=options,
        model=Model.from_arrays(
            below("model/"), float(index.options["label_weight"]), index.labels is not None
        ),
        learner=None if learner is None else training.restored(index, learner),
        centers=centers,
        consumed=arrays["consumed"],
        rows=rows,
        handover=Handover.from_arrays(index, below("progress/")),
        metrics=metrics,
    )
    return plan, load_position(session, index) or Position.start(plan)


def save_position(session: Session, index: IndexRow, position: Position) -> None:
    after = "" if position.after is None else str(position.after)
    arrays: Arrays = {
        "after": np.array(json.dumps([position.after is None, after, position.done])),
        "lengths": position.lengths,
        "parts": position.parts,
        **index.keys.pack("sample_keys", position.sample_keys[_within(position.sampled)]),
        "sample_codes": position.sample_codes,
        "sampled": position.sampled,
        **index.keys.pack("far", position.far),
    }
    save_arrays(session, "position", PRESENT, arrays)


def load_position(session: Session, index: IndexRow) -> Position | None:
    arrays = load_arrays(session, "position", PRESENT)
    if arrays is None:
        return None
    none, after, done = json.loads(str(arrays["after"]))
    sample_keys = np.zeros((len(arrays["sampled"]), SAMPLE), dtype=index.keys.dtype)
    sample_keys[_within(arrays["sampled"])] = index.keys.unpack("sample_keys", arrays)
    return Position(
        None if none else (int(after) if index.keys.dtype == np.int64 else after),
        done,
        arrays["lengths"],
        arrays["parts"],
        sample_keys,
        arrays["sample_codes"],
        arrays["sampled"],
        index.keys.unpack("far", arrays),
    )


def _within(sampled: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which places of samples are filled."""
    return np.arange(SAMPLE) < sampled[:, None]


def discard_plan(session: Session) -> None:
    """Forget an interrupted filling, with the lists it left."""
    with session.write():
        session.execute(ORPHANS)
        for name in UNFINISHED:
            delete_arrays(session, name, PRESENT)
