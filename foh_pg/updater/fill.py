"""Filling an index from its source: every row encoded and placed once, beside what is served, then switched.

Lists of a filling belong to centers that no search knows yet, so they can be written and committed piece by
piece. What is needed to go on after an interruption stands in foh.model_state: the plan, written once, and
how far it is, written with every piece.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.errors import FenceError
from foh_pg.tables.centers import (
    SAMPLE,
    Centers,
    fill_samples,
    make_centers,
    no_centers,
    read_centers,
)
from foh_pg.tables.index_row import IndexRow, read_index
from foh_pg.tables.items import items_from_lists
from foh_pg.tables.lists import Entries, join_entries, new_parts, no_entries, write_parts
from foh_pg.tables.model import Model
from foh_pg.tables.model_state import (
    PRESENT,
    Arrays,
    delete_arrays,
    load_arrays,
    save_arrays,
)
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.tables.source import Rows, read_page
from foh_pg.updater.install import Installation, Placed, install
from foh_pg.updater.nearest_rows import Neighbors

# Rows read and encoded at a time: this many bytes of vectors, and never more rows than that.
PAGE_BYTES = 64 << 20
PAGE_ROWS = 50_000
LEAST_PAGE_ROWS = 1000

# Entries written in one piece. A list grows by a part with each, so pieces are large.
PIECE_ROWS = 500_000

RESERVE = """
UPDATE foh.index SET next_center = %(next_center)s
WHERE id = {id} AND version = %(version)s AND next_center = %(first)s
"""
ORPHANS = "DELETE FROM {list} l WHERE NOT EXISTS (SELECT FROM {center} c WHERE c.center = l.center)"


@dataclass(frozen=True)
class Plan:
    """What a filling will make, decided before the first row is placed.

    Attributes
    ----------
    kind : str
        What it is for; another purpose does not go on with it.
    version : int
        The version of the index that it replaces.
    options : str
        The options of the index, as JSON: with other ones the plan is void.
    model, learner : Model, arrays
        As in Installation; geometry is new with every filling, so the model is too.
    centers : Centers
        With ids of their own, from `first` on.
    consumed : array
        Entries of the stream that every row is read later than.
    rows : int
        About how many rows there are, for the progress bar.
    progress, metrics
        As in Installation.
    """

    kind: str
    version: int
    options: str
    model: Model
    learner: Arrays | None
    centers: Centers
    consumed: npt.NDArray[np.int64]
    rows: int
    progress: Arrays
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
        )


def options_text(index: IndexRow) -> str:
    return json.dumps([index.options, index.learner, index.labels], sort_keys=True)


def fill(session: Session, run: Run, index: IndexRow, plan: Plan, position: Position | None = None) -> None:
    """Place every row of the source, then switch to what was made."""
    if position is None:
        position = Position.start(plan)
        with run.phase("plan"):
            _begin(session, index, plan)
    with run.phase("place", plan.rows):
        _place(session, run, index, plan, position)
    run.rows_encoded += position.done
    # An update that fills counts what it takes from the stream, like any other.
    run.rows += len(plan.consumed) if run.kind == "update" else position.done
    run.lists = int(np.count_nonzero(position.lengths))
    run.stale = 0.0
    _switch(session, run, index, plan, position)


def _begin(session: Session, index: IndexRow, plan: Plan) -> None:
    """Reserve the ids of the centers and write the plan down."""
    with session.write():
        values = {
            "first": index.next_center,
            "next_center": index.next_center + len(plan.centers),
            "version": index.version,
        }
        if session.execute(RESERVE, values) != 1:
            raise FenceError(f"index {index.name!r} was changed by another updater: run the command again")
        session.execute(ORPHANS)
        save_plan(session, plan)
        delete_arrays(session, "position", PRESENT)


def _place(session: Session, run: Run, index: IndexRow, plan: Plan, position: Position) -> None:
    size = max(LEAST_PAGE_ROWS, min(PAGE_ROWS, PAGE_BYTES // (4 * index.dimensions)))
    pieces: list[Entries] = []
    neighbors = Neighbors(index, plan.centers, plan.model)
    more = True
    while more:
        # Each page has a snapshot of its own: a row changed since the plan was made has an entry in the
        # stream that the plan does not consume, and that entry wins.
        with session.snapshot():
            page, after, more = read_page(session, index, position.after, size)
        pieces.append(_place_page(index, plan, page, neighbors))
        position.after = after
        position.done += len(page)
        run.step(position.done, plan.rows)
        if not more or sum(map(len, pieces)) >= PIECE_ROWS:
            _write_piece(session, index, plan, position, join_entries(index, pieces))
            pieces = []
    if neighbors.keep:
        _write_piece(session, index, plan, position, neighbors.entries())


def _place_page(index: IndexRow, plan: Plan, page: Rows, neighbors: Neighbors) -> Entries:
    """Encode rows and find their homes; the centers of the entries are positions."""
    # Without centers the table was empty when the plan was made: rows that have come since are in the stream.
    if len(page) == 0 or len(plan.centers) == 0:
        return no_entries(index)
    marks = plan.model.marks(page.vectors, page.labels)
    geometry = plan.model.geometry_bits(page.vectors, plan.model.codes_of(marks))
    homes = plan.centers.homes(index, page.vectors)[:, : int(index.options["homes"])]
    neighbors.add(page, geometry, marks, homes)
    rows = np.repeat(np.arange(len(page)), homes.shape[1])
    parts = np.zeros(homes.size, dtype=np.int64)
    return Entries(homes.reshape(-1), parts, page.keys[rows], geometry[rows], marks[rows])


def _write_piece(session: Session, index: IndexRow, plan: Plan, position: Position, entries: Entries) -> None:
    ordered = new_parts(entries, position.parts)
    counts = np.bincount(entries.centers, minlength=len(plan.centers))
    position.lengths = position.lengths + counts
    np.maximum.at(position.parts, ordered.centers, ordered.parts + 1)
    _sample(plan, position, entries)
    named = ordered.moved(plan.centers.ids[ordered.centers], ordered.parts)
    with session.write():
        write_parts(session, index, named)
        save_position(session, index, position)


def _sample(plan: Plan, position: Position, entries: Entries) -> None:
    """Fill up the samples of members by which later runs see how stale a list is."""
    position.sampled = fill_samples(
        np.random.default_rng([plan.version, position.done]),
        position.sampled,
        position.sample_keys,
        position.sample_codes,
        entries.centers,
        entries.keys,
        plan.model.codes_of(entries.marks),
    )


def _switch(session: Session, run: Run, index: IndexRow, plan: Plan, position: Position) -> None:
    first = int(plan.centers.ids[0]) if len(plan.centers) else index.next_center
    with session.snapshot():
        before = read_centers(session, index)
        present = read_index(session)
    after = plan.centers.with_(
        lengths=position.lengths,
        sample_keys=position.sample_keys,
        sample_codes=position.sample_codes,
        sampled=position.sampled,
    )

    def write(inside: Session) -> None:
        inside.execute("DELETE FROM {list} WHERE center < %(first)s", {"first": first})
        items_from_lists(inside, index, first)
        for name in ("plan", "position"):
            delete_arrays(inside, name, PRESENT)
        if plan.learner is not None:
            delete_arrays(inside, "plan_learner", PRESENT)

    install(
        session,
        run,
        Installation(
            index,
            before,
            after,
            plan.model,
            plan.version + 1,
            plan.learner,
            plan.progress,
            present.next_center,
            plan.consumed,
            write,
            Placed(plan.version + 1, first),
            plan.metrics,
        ),
    )


# -- what an interrupted filling goes on with ----------------------------------------------------------------


def save_plan(session: Session, plan: Plan) -> None:
    arrays: Arrays = {
        "head": np.array(json.dumps([plan.kind, plan.version, plan.options, plan.rows, plan.metrics])),
        "consumed": plan.consumed,
    }
    arrays.update({f"model/{name}": array for name, array in plan.model.to_arrays().items()})
    arrays.update({f"progress/{name}": array for name, array in plan.progress.items()})
    # Lists are empty and samples too: what is left of the centers is where they lie.
    for name in ("areas", "ids", "area", "rows"):
        arrays[f"centers/{name}"] = getattr(plan.centers, name)
    save_arrays(session, "plan", PRESENT, arrays)
    if plan.learner is not None:
        save_arrays(session, "plan_learner", PRESENT, plan.learner)
    else:
        delete_arrays(session, "plan_learner", PRESENT)


def load_plan(session: Session, index: IndexRow, kind: str) -> tuple[Plan, Position] | None:
    """The plan that was left unfinished, and how far it came; None where none fits the index as it is now."""
    arrays = load_arrays(session, "plan", PRESENT)
    if arrays is None:
        return None
    found, version, options, rows, metrics = json.loads(str(arrays["head"]))
    if (found, version, options) != (kind, index.version, options_text(index)):
        return None
    if int(index.options["neighbors"]):
        return None  # the nearest rows found so far were not written down

    def below(name: str) -> Arrays:
        return {key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)}

    places = below("centers/")
    centers = no_centers(index)
    if len(places["ids"]):
        first = int(places["ids"][0])
        centers = make_centers(index, first, places["areas"], places["area"], places["rows"], version + 1)
        # As they were when rows were placed by them: brought to length one again, some would be rounded anew.
        centers = centers.with_(areas=places["areas"], rows=places["rows"])
    plan = Plan(
        found,
        version,
        options,
        Model.from_arrays(below("model/"), float(index.options["label_weight"]), index.labels is not None),
        load_arrays(session, "plan_learner", PRESENT),
        centers,
        arrays["consumed"],
        rows,
        below("progress/"),
        metrics,
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
    }
    save_arrays(session, "position", PRESENT, arrays)


def load_position(session: Session, index: IndexRow) -> Position | None:
    arrays = load_arrays(session, "position", PRESENT)
    if arrays is None:
        return None
    none, after, done = json.loads(str(arrays["after"]))
    sample_keys = np.zeros((len(arrays["sampled"]), SAMPLE), dtype=index.keys.dtype)
    if "sample_ends" in arrays:
        # Saved by version 0.1.0.
        arrays["sample_keys_lengths"] = np.diff(arrays["sample_ends"])
    sample_keys[_within(arrays["sampled"])] = index.keys.unpack("sample_keys", arrays)
    return Position(
        None if none else (int(after) if index.keys.dtype == np.int64 else after),
        done,
        arrays["lengths"],
        arrays["parts"],
        sample_keys,
        arrays["sample_codes"],
        arrays["sampled"],
    )


def _within(sampled: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which places of samples are filled."""
    return np.arange(SAMPLE) < sampled[:, None]


def discard_plan(session: Session) -> None:
    """Forget an interrupted filling, with the lists it left."""
    with session.write():
        session.execute(ORPHANS)
        for name in ("plan", "plan_learner", "position"):
            delete_arrays(session, name, PRESENT)
