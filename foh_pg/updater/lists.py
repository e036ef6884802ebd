"""Lists of an index: read in parts, changed in parts, so that a run rewrites only what it touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import LiteralString

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray, width
from foh_pg.database.copy import INT4, Array, Ragged
from foh_pg.updater.description import Index
from foh_pg.updater.keys import KeyArray, member
from foh_pg.updater.session import Session

# Entries in one part. Identical codes cannot be split into lists, so a list may have any number of parts.
PART = 512

IntArray = npt.NDArray[np.int64]

WHOLE = "SELECT l.center, l.part, l.ids, l.codes FROM {list} l WHERE l.center = ANY (%(centers)s)"
TAILS = """
SELECT DISTINCT ON (l.center) l.center, l.part, l.ids, l.codes FROM {list} l
WHERE l.center = ANY (%(centers)s) ORDER BY l.center, l.part DESC
"""
DELETE = """
DELETE FROM {list} l
USING ROWS FROM (pg_catalog.unnest(%(centers)s::int[]), pg_catalog.unnest(%(parts)s::int[]))
      AS d (center, part)
WHERE l.center = d.center AND l.part = d.part
"""


@dataclass(frozen=True)
class Entries:
    """Entries of lists, each with the center and the part it stands in."""

    centers: IntArray
    parts: IntArray
    keys: KeyArray
    codes: CodeArray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, chosen: npt.NDArray[Any]) -> Entries:
        return Entries(self.centers[chosen], self.parts[chosen], self.keys[chosen], self.codes[chosen])


@dataclass(frozen=True)
class ListChange:
    """Parts to delete, and entries, ordered by center and part, to write in whole parts."""

    deleted_centers: IntArray
    deleted_parts: IntArray
    written: Entries


def join_entries(index: Index, parts: list[Entries]) -> Entries:
    none = no_entries(index)
    whole = [none, *parts]
    return Entries(
        np.concatenate([part.centers for part in whole]),
        np.concatenate([part.parts for part in whole]),
        np.concatenate([part.keys for part in whole]),
        np.concatenate([part.codes for part in whole]),
    )


def no_entries(index: Index) -> Entries:
    none = np.zeros(0, dtype=np.int64)
    return Entries(none, none, index.keys.empty(), np.zeros((0, width(index.bits)), dtype=np.uint8))


def read_lists(session: Session, index: Index, centers: npt.NDArray[Any]) -> Entries:
    """All entries of the lists of these centers."""
    return _read(session, index, WHOLE, centers)


def read_tails(session: Session, index: Index, centers: npt.NDArray[Any]) -> Entries:
    """The entries in the last part of each of these lists: where others can be appended."""
    return _read(session, index, TAILS, centers)


def _read(session: Session, index: Index, text: LiteralString, centers: npt.NDArray[Any]) -> Entries:
    if len(centers) == 0:
        return no_entries(index)
    columns = [INT4, INT4, Array(index.keys.column), Array(index.code_column)]
    found = []
    for center, part, ids, codes in session.copy_out(text, columns, {"centers": centers.tolist()}):
        lengths = ids.lengths
        found.append(
            Entries(
                np.repeat(center.astype(np.int64), lengths),
                np.repeat(part.astype(np.int64), lengths),
                index.keys.read(ids.values),
                codes.values,
            )
        )
    return join_entries(index, found)


def change_lists(index: Index, loaded: Entries, leaving: KeyArray, joining: Entries) -> ListChange:
    """Take keys out of the loaded parts and append entries to the last of them.

    Parameters
    ----------
    loaded : Entries
        Of every list that a key leaves all parts, of every list that others join at least the last part.
    leaving : array
        Keys to take out wherever they are loaded.
    joining : Entries
        What joins which center; their parts mean nothing.
    """
    stays = ~member(loaded.keys, leaving)
    changed = _pairs(loaded.centers[~stays], loaded.parts[~stays])
    kept = loaded.take(stays)
    tail = _tails(loaded, kept, joining.centers)
    opened = Entries(joining.centers, tail, joining.keys, joining.codes)
    touched = np.union1d(changed, _pairs(opened.centers, opened.parts))
    rest = kept.take(np.isin(_pairs_of(kept.centers, kept.parts), touched))
    written = join_entries(index, [rest, opened])
    pairs = np.unique(_pairs_of(loaded.centers, loaded.parts))
    deleted = pairs[np.isin(pairs, touched)]
    return ListChange(deleted >> 32, deleted & 0xFFFFFFFF, _in_parts(written))


def _pairs_of(centers: IntArray, parts: IntArray) -> IntArray:
    return (centers << 32) | parts


def _pairs(centers: IntArray, parts: IntArray) -> IntArray:
    return np.unique(_pairs_of(centers, parts))


def _tails(loaded: Entries, kept: Entries, centers: IntArray) -> IntArray:
    """The part where entries that join each of `centers` go: its last one, or the next where that is full."""
    pairs = _pairs(loaded.centers, loaded.parts)
    remaining = np.zeros(len(pairs), dtype=np.int64)
    at, counts = np.unique(_pairs_of(kept.centers, kept.parts), return_counts=True)
    remaining[np.searchsorted(pairs, at)] = counts
    if len(pairs) == 0:
        return np.zeros(len(centers), dtype=np.int64)
    # Pairs are ordered by center, then part: the last of a center stands before the first of the next.
    last = np.searchsorted(pairs, (centers + 1) << 32) - 1
    known = (last >= 0) & (pairs[np.maximum(last, 0)] >> 32 == centers)
    part = pairs[np.maximum(last, 0)] & 0xFFFFFFFF
    full = remaining[np.maximum(last, 0)] >= PART
    tails: IntArray = np.where(known, part + full, 0).astype(np.int64)
    return tails


def _in_parts(entries: Entries) -> Entries:
    """Order entries by center and part; what is too much for a part goes on in the next."""
    order = np.argsort(_pairs_of(entries.centers, entries.parts), kind="stable")
    ordered = entries.take(order)
    pairs = _pairs_of(ordered.centers, ordered.parts)
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    rank = np.arange(len(pairs)) - np.repeat(begins, np.diff(np.append(begins, len(pairs))))
    return Entries(ordered.centers, ordered.parts + rank // PART, ordered.keys, ordered.codes)


def new_parts(entries: Entries, next_part: IntArray) -> Entries:
    """Entries of lists in parts that begin where `next_part`, by center id, says."""
    return _in_parts(Entries(entries.centers, next_part[entries.centers], entries.keys, entries.codes))


def write_parts(session: Session, index: Index, entries: Entries) -> int:
    """Append whole parts, ordered by center and part; return how many."""
    pairs = _pairs_of(entries.centers, entries.parts)
    # Equal codes side by side: a search then compares each code of a part once.
    entries = entries.take(np.lexsort((*entries.codes.T[::-1], pairs)))
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    bounds = np.append(begins, len(pairs))
    return session.copy_in(
        "list",
        ["center", "part", "ids", "codes"],
        [INT4, INT4, Array(index.keys.column), Array(index.code_column)],
        [
            entries.centers[begins],
            entries.parts[begins],
            Ragged(entries.keys, bounds),
            Ragged(entries.codes, bounds),
        ],
    )


def write_lists(session: Session, index: Index, change: ListChange) -> None:
    if len(change.deleted_centers):
        session.execute(
            DELETE, {"centers": change.deleted_centers.tolist(), "parts": change.deleted_parts.tolist()}
        )
    write_parts(session, index, change.written)
