"""Lists that new hash functions made stale get new marks for their members; no row moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray
from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import Centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, positions
from foh_pg.tables.lists import read_members
from foh_pg.tables.parts import Entries, Members, Remarked
from foh_pg.tables.source import read_by_key

# Members that are read and encoded at a time.
OPENED_ROWS = 50_000

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Encoded:
    """Lists that were encoded again where they stand."""

    # Their new marks.
    remarked: list[Remarked]
    # centers, keys, codes: their members: the id of the center, the key, the learned code.
    centers: IntArray
    keys: KeyArray
    codes: CodeArray
    # Ids of lists with members that the source does not have; these were not encoded.
    incomplete: IntArray

    @property
    def lists(self) -> IntArray:
        return np.unique(self.centers)


def encode_again(
    session: Session, run: Run, index: IndexRow, model: Model, centers: Centers, opened: IntArray
) -> Encoded:
    """Compute new marks for all members of some lists, given by the ids of their centers."""
    none = np.zeros(0, dtype=np.int64)
    codes = np.zeros((0, index.code_column.packed), dtype=np.uint8)
    made = [Encoded([], none, index.keys.empty(), codes, none)]
    total = int(centers.lengths[centers.find(opened)].sum())
    done = 0
    for ids in _portions(centers, opened):
        made.append(_encode(session, index, model, ids))
        done += len(made[-1].keys)
        run.step(done, total)
    return Encoded(
        [remarked for part in made for remarked in part.remarked],
        np.concatenate([part.centers for part in made]),
        np.concatenate([part.keys for part in made]),
        np.concatenate([part.codes for part in made]),
        np.concatenate([part.incomplete for part in made]),
    )


def _portions(centers: Centers, opened: IntArray) -> Iterator[IntArray]:
    """Lists of about OPENED_ROWS members each."""
    number = np.cumsum(centers.lengths[centers.find(opened)]) // OPENED_ROWS
    for i in np.unique(number).tolist():
        yield opened[number == i]


def _encode(session: Session, index: IndexRow, model: Model, ids: IntArray) -> Encoded:
    with session.snapshot():
        members = read_members(session, index, ids)
        rows = read_by_key(session, index, np.unique(members.keys.values))
    marks = model.marks(rows.vectors, rows.labels)
    at = positions(members.keys.values, rows.keys)
    incomplete = np.unique(members.of_entries()[at < 0])
    members, kept = _without(members, incomplete)
    found = marks[at[kept]]
    codes = model.codes_of(found)
    bounds = members.keys.bounds
    remarked = Remarked(members.centers, members.parts, Ragged(found, bounds))
    return Encoded([remarked], members.of_entries(), members.keys.values, codes, incomplete)


def _without(members: Members, lists: IntArray) -> tuple[Members, npt.NDArray[np.bool_]]:
    """The members without those of `lists`, and which entries stay."""
    stays = ~np.isin(members.centers, lists)
    kept = np.repeat(stays, members.keys.lengths)
    return Members(members.centers[stays], members.parts[stays], members.keys.choose(stays)), kept


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
    with session.snapshot():
        rows = read_by_key(session, index, np.unique(entries.keys[where]))
    at = positions(entries.keys[where], rows.keys)
    there = at >= 0
    marks = entries.marks.copy()
    marks[where[there]] = model.marks(rows.vectors, rows.labels)[at[there]]
    return entries.remarked(marks), np.unique(entries.keys[where[~there]])
