"""Lists of an index: read in parts, changed in parts, so that a run rewrites only what it touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import LiteralString

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray
from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.postgres.binary_copy import INT4, Array
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.session import Session

# Entries in one part. Rows that are all alike cannot be split into lists, so a list may have any number of
# parts.
PART = 512

# Parts whose marks are replaced by one statement.
PARTS_AT_ONCE = 500

IntArray = npt.NDArray[np.int64]

WHOLE = "SELECT l.center, l.part, l.ids, l.geometry, l.marks FROM {list} l WHERE l.center = ANY (%(centers)s)"
TAILS = """
SELECT DISTINCT ON (l.center) l.center, l.part, l.ids, l.geometry, l.marks FROM {list} l
WHERE l.center = ANY (%(centers)s) ORDER BY l.center, l.part DESC
"""
MEMBERS = "SELECT l.center, l.part, l.ids FROM {list} l WHERE l.center = ANY (%(centers)s)"
DELETE = """
DELETE FROM {list} l
USING ROWS FROM (pg_catalog.unnest(%(centers)s::int[]), pg_catalog.unnest(%(parts)s::int[]))
      AS d (center, part)
WHERE l.center = d.center AND l.part = d.part
"""
# Keys and geometry of a list that is only encoded again stay where they are on disk.
REMARK = """
UPDATE {list} l SET marks = d.marks::bit({mark_bits})[]
FROM ROWS FROM (pg_catalog.unnest(%(centers)s::int[]), pg_catalog.unnest(%(parts)s::int[]),
                pg_catalog.unnest(%(marks)s::text[])) AS d (center, part, marks)
WHERE l.center = d.center AND l.part = d.part
"""
REMARK_BOTH = """
UPDATE {list} l SET marks = d.marks::bit({mark_bits})[], geometry = d.geometry::bit({geometry_bits})[]
FROM ROWS FROM (pg_catalog.unnest(%(centers)s::int[]), pg_catalog.unnest(%(parts)s::int[]),
                pg_catalog.unnest(%(marks)s::text[]), pg_catalog.unnest(%(geometry)s::text[]))
     AS d (center, part, marks, geometry)
WHERE l.center = d.center AND l.part = d.part
"""


@dataclass(frozen=True)
class Entries(SideBySide):
    """Entries of lists, each with the center and the part it stands in."""

    centers: IntArray
    parts: IntArray
    keys: KeyArray
    geometry: CodeArray
    marks: CodeArray

    def moved(self, centers: IntArray, parts: IntArray | None = None) -> Entries:
        """The same rows in other lists."""
        where = np.zeros(len(centers), dtype=np.int64) if parts is None else parts
        return Entries(centers, where, self.keys, self.geometry, self.marks)


@dataclass(frozen=True)
class Members:
    """Keys of lists, part by part, without what is stored beside them."""

    centers: IntArray
    parts: IntArray
    keys: Ragged

    def __len__(self) -> int:
        return len(self.keys.values)

    def of_entries(self) -> IntArray:
        """The center of every key."""
        return np.repeat(self.centers, self.keys.lengths)


@dataclass(frozen=True)
class Remarked:
    """New marks of whole parts, in the order of their keys; geometry where the code stands in its place."""

    centers: IntArray
    parts: IntArray
    marks: Ragged
    geometry: Ragged | None = None


@dataclass(frozen=True)
class ListChange:
    """Parts to delete, entries, ordered by center and part, to write in whole parts, and parts to remark."""

    deleted_centers: IntArray
    deleted_parts: IntArray
    written: Entries
    remarked: list[Remarked]


def join_entries(index: IndexRow, parts: list[Entries]) -> Entries:
    return no_entries(index).joined(parts)


def no_entries(index: IndexRow) -> Entries:
    none = np.zeros(0, dtype=np.int64)
    return Entries(
        none,
        none,
        index.keys.empty(),
        np.zeros((0, index.geometry_column.packed), dtype=np.uint8),
        np.zeros((0, index.marks_column.packed), dtype=np.uint8),
    )


# -- reading -------------------------------------------------------------------------------------------------


def read_lists(session: Session, index: IndexRow, centers: npt.NDArray[Any]) -> Entries:
    """All entries of the lists of these centers."""
    return _read(session, index, WHOLE, centers)


def read_tails(session: Session, index: IndexRow, centers: npt.NDArray[Any]) -> Entries:
    """The entries in the last part of each of these lists: where others can be appended."""
    return _read(session, index, TAILS, centers)


def _read(session: Session, index: IndexRow, text: LiteralString, centers: npt.NDArray[Any]) -> Entries:
    if len(centers) == 0:
        return no_entries(index)
    bits = [Array(index.geometry_column), Array(index.marks_column)]
    columns = [INT4, INT4, Array(index.keys.column), *bits]
    found = []
    for center, part, ids, geometry, marks in session.copy_out(text, columns, {"centers": centers.tolist()}):
        lengths = ids.lengths
        found.append(
            Entries(
                np.repeat(center.astype(np.int64), lengths),
                np.repeat(part.astype(np.int64), lengths),
                index.keys.read(ids.values),
                geometry.values,
                marks.values,
            )
        )
    return join_entries(index, found)


def read_members(session: Session, index: IndexRow, centers: npt.NDArray[Any]) -> Members:
    """The keys in the lists of these centers."""
    none = np.zeros(0, dtype=np.int64)
    parts: list[tuple[Any, ...]] = []
    if len(centers):
        columns = [INT4, INT4, Array(index.keys.column)]
        parts = [*session.copy_out(MEMBERS, columns, {"centers": centers.tolist()})]
    lengths = np.concatenate([none, *(part[2].lengths for part in parts)])
    keys = np.concatenate([index.keys.empty(), *(index.keys.read(part[2].values) for part in parts)])
    return Members(
        np.concatenate([none, *(part[0] for part in parts)]),
        np.concatenate([none, *(part[1] for part in parts)]),
        Ragged(keys, np.concatenate([[0], np.cumsum(lengths)])),
    )


# -- changing ------------------------------------------------------------------------------------------------


def change_lists(
    index: IndexRow,
    loaded: Entries,
    leaving: npt.NDArray[np.bool_],
    joining: Entries,
    rewritten: IntArray,
    remarked: list[Remarked],
) -> ListChange:
    """Take entries out of the loaded parts and append others to the last of them.

    Parameters
    ----------
    loaded : Entries
        All parts of every list that a key leaves, at least the last part of every list that others join.
    leaving : array of bool
        Which of the loaded entries go.
    joining : Entries
        Entries that join, each with its center; their parts are ignored.
    rewritten : array
        Ids of centers whose loaded entries have new marks: all of their parts are written.
    """
    changed = _pairs(loaded.centers[leaving], loaded.parts[leaving])
    kept = loaded.take(~leaving)
    tail = _tails(loaded, kept, joining.centers)
    opened = joining.moved(joining.centers, tail)
    again = np.isin(loaded.centers, rewritten)
    touched = np.unique(
        np.concatenate(
            [
                changed,
                _pairs(opened.centers, opened.parts),
                _pairs(loaded.centers[again], loaded.parts[again]),
            ]
        )
    )
    rest = kept.take(np.isin(_pairs_of(kept.centers, kept.parts), touched))
    written = join_entries(index, [rest, opened])
    pairs = np.unique(_pairs_of(loaded.centers, loaded.parts))
    deleted = pairs[np.isin(pairs, touched)]
    return ListChange(deleted >> 32, deleted & 0xFFFFFFFF, _in_parts(written), remarked)


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
    return ordered.moved(ordered.centers, ordered.parts + rank // PART)


def new_parts(entries: Entries, next_part: IntArray) -> Entries:
    """Entries of lists in parts that begin where `next_part`, by position of the center, says."""
    return _in_parts(entries.moved(entries.centers, next_part[entries.centers]))


# -- writing -------------------------------------------------------------------------------------------------


def write_parts(session: Session, index: IndexRow, entries: Entries) -> int:
    """Append whole parts, ordered by center and part; return how many."""
    pairs = _pairs_of(entries.centers, entries.parts)
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    bounds = np.append(begins, len(pairs))
    bits = [Array(index.geometry_column), Array(index.marks_column)]
    return session.copy_in(
        "list",
        ["center", "part", "ids", "geometry", "marks"],
        [INT4, INT4, Array(index.keys.column), *bits],
        [
            entries.centers[begins],
            entries.parts[begins],
            Ragged(entries.keys, bounds),
            Ragged(entries.geometry, bounds),
            Ragged(entries.marks, bounds),
        ],
    )


def write_lists(session: Session, index: IndexRow, change: ListChange) -> None:
    if len(change.deleted_centers):
        session.execute(
            DELETE, {"centers": change.deleted_centers.tolist(), "parts": change.deleted_parts.tolist()}
        )
    write_parts(session, index, change.written)
    for remarked in change.remarked:
        _remark(session, index, remarked)


def _remark(session: Session, index: IndexRow, new: Remarked) -> None:
    for start in range(0, len(new.centers), PARTS_AT_ONCE):
        end = min(start + PARTS_AT_ONCE, len(new.centers))
        values: dict[str, Any] = {
            "centers": new.centers[start:end].tolist(),
            "parts": new.parts[start:end].tolist(),
            "marks": _texts(new.marks.part(start, end), index.marks_column.bits),
        }
        if new.geometry is None:
            session.execute(REMARK, values)
        else:
            values["geometry"] = _texts(new.geometry.part(start, end), index.geometry_column.bits)
            session.execute(REMARK_BOTH, values)


def _texts(codes: Ragged, bits: int) -> list[str]:
    """Arrays of bit strings as PostgreSQL reads them."""
    characters = np.full((len(codes.values), bits + 1), ord(","), dtype=np.uint8)
    characters[:, :bits] = np.unpackbits(codes.values, axis=1, count=bits) + ord("0")
    return ["{" + characters[low:high].tobytes()[:-1].decode() + "}" for low, high in _ranges(codes.bounds)]


def _ranges(bounds: npt.NDArray[Any]) -> list[tuple[int, int]]:
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
