"""Lists that new hash functions made stale get new marks for their members; no row moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import Centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, positions
from foh_pg.tables.lists import read_members
from foh_pg.tables.parts import Entries, Remarked
from foh_pg.updater.placing import marks_now

# Members that are read and encoded at a time.
OPENED_ROWS = 50_000

IntArray = npt.NDArray[np.int64]


def encode_again(
    session: Session, run: Run, index: IndexRow, model: Model, centers: Centers, opened: IntArray
) -> tuple[Remarked, IntArray]:
    """Compute new marks for all members of some lists, given by the ids of their centers.

    Return also the ids of lists with members that the source does not have; these were not encoded.
    """
    none = np.zeros(0, dtype=np.int64)
    no_keys, no_marks = index.keys.empty(), index.marks_column.empty()
    made = [Remarked(none, none, Ragged(no_keys, np.zeros(1, int)), Ragged(no_marks, np.zeros(1, int)))]
    incomplete = [none]
    total = int(centers.lengths[centers.find(opened)].sum())
    done = 0
    for ids in _portions(centers, opened):
        part, missing = _encode(session, index, model, ids)
        made.append(part)
        incomplete.append(missing)
        done += len(part.keys.values)
        run.step(done, total)
    return made[0].joined(made[1:]), np.concatenate(incomplete)


def _portions(centers: Centers, opened: IntArray) -> Iterator[IntArray]:
    """Lists of about OPENED_ROWS members each."""
    number = np.cumsum(centers.lengths[centers.find(opened)]) // OPENED_ROWS
    for i in np.unique(number).tolist():
        yield opened[number == i]


def _encode(session: Session, index: IndexRow, model: Model, ids: IntArray) -> tuple[Remarked, IntArray]:
    with session.snapshot():
        centers, parts, keys = read_members(session, index, ids)
    marks, there = marks_now(session, index, model, keys.values)
    incomplete = np.unique(np.repeat(centers, keys.lengths)[~there])
    stays = ~np.isin(centers, incomplete)
    kept = keys.choose(stays)
    remarked = Ragged(marks[np.repeat(stays, keys.lengths)[there]], kept.bounds)
    return Remarked(centers[stays], parts[stays], kept, remarked), incomplete


def with_new_marks(
    session: Session, index: IndexRow, model: Model, entries: Entries, lists: IntArray, changed: KeyArray
) -> tuple[Entries, KeyArray]:
    """Replace the marks of entries in some lists; return also the keys there that the source does not have.

    `changed`: keys that leave their lists anyway.
    """
    where = np.flatnonzero(np.isin(entries.centers, lists))
    where = where[positions(entries.keys[where], changed) < 0]
    if len(where) == 0:
        return entries, index.keys.empty()
    now, there = marks_now(session, index, model, entries.keys[where])
    marks = entries.marks.copy()
    marks[where[there]] = now
    return entries.remarked(marks), np.unique(entries.keys[where[~there]])
