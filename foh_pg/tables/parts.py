"""Lists are stored in parts that fit a page. Here, in memory: which parts change, and what is then in them.

Rows that are all alike cannot be split into lists, so a list may have any number of parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray
from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.page_parts import PAGE_BYTES, bit_bytes, page_of

IntArray = npt.NDArray[np.int64]


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
    """New marks of whole parts, in the order of their keys."""

    centers: IntArray
    parts: IntArray
    marks: Ragged


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


def change_lists(
    index: IndexRow,
    loaded: Entries,
    leaving: npt.NDArray[np.bool_],
    joining: Entries,
    rewritten: IntArray,
    remarked: list[Remarked],
) -> ListChange:
    """Take entries out of the loaded parts and append others to the last of them.

    `loaded`: all parts of every list that a key leaves, at least the last part of every list that others
    join. `leaving`: which of the loaded entries go. `joining`: entries that join, each with its center; their
    parts are ignored. `rewritten`: ids of centers whose loaded entries have new marks: all of their parts are
    written.
    """
    changed = _pairs(loaded.centers[leaving], loaded.parts[leaving])
    kept = loaded.take(~leaving)
    tail = _tails(index, loaded, kept, joining.centers)
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
    rest = kept.take(np.isin(pairs_of(kept.centers, kept.parts), touched))
    written = join_entries(index, [rest, opened])
    pairs = np.unique(pairs_of(loaded.centers, loaded.parts))
    deleted = pairs[np.isin(pairs, touched)]
    return ListChange(deleted >> 32, deleted & 0xFFFFFFFF, _in_parts(index, written), remarked)


def pairs_of(centers: IntArray, parts: IntArray) -> IntArray:
    return (centers << 32) | parts


def _pairs(centers: IntArray, parts: IntArray) -> IntArray:
    return np.unique(pairs_of(centers, parts))


def _entry_bytes(index: IndexRow, keys: KeyArray) -> IntArray:
    bits = bit_bytes(index.geometry_column.bits) + bit_bytes(index.marks_column.bits)
    return index.keys.sizes(keys) + bits


def _tails(index: IndexRow, loaded: Entries, kept: Entries, centers: IntArray) -> IntArray:
    """The part where entries that join each of `centers` go: its last one, or the next where that is full."""
    pairs = _pairs(loaded.centers, loaded.parts)
    if len(pairs) == 0:
        return np.zeros(len(centers), dtype=np.int64)
    sizes = _entry_bytes(index, kept.keys)
    at = np.searchsorted(pairs, pairs_of(kept.centers, kept.parts))
    used = np.bincount(at, weights=sizes, minlength=len(pairs))
    most = int(sizes.max(initial=0))
    # Pairs are ordered by center, then part: the last of a center stands before the first of the next.
    last = np.searchsorted(pairs, (centers + 1) << 32) - 1
    known = (last >= 0) & (pairs[np.maximum(last, 0)] >> 32 == centers)
    part = pairs[np.maximum(last, 0)] & 0xFFFFFFFF
    full = used[np.maximum(last, 0)] + most > PAGE_BYTES
    tails: IntArray = np.where(known, part + full, 0).astype(np.int64)
    return tails


def _in_parts(index: IndexRow, entries: Entries) -> Entries:
    """Order entries by center and part; what is too much for a part goes on in the next."""
    order = np.argsort(pairs_of(entries.centers, entries.parts), kind="stable")
    ordered = entries.take(order)
    pages = page_of(pairs_of(ordered.centers, ordered.parts), _entry_bytes(index, ordered.keys))
    return ordered.moved(ordered.centers, ordered.parts + pages)


def new_parts(index: IndexRow, entries: Entries, next_part: IntArray) -> Entries:
    """Entries of lists in parts that begin where `next_part`, by position of the center, says."""
    return _in_parts(index, entries.moved(entries.centers, next_part[entries.centers]))
