"""Lists are stored in parts that fit a page. Here, in memory: which parts change, and what is then in them.

Rows that are all alike cannot be split into lists, so a list may have any number of parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray
from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.postgres.binary_copy import Bits
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.page_parts import ARRAY_BYTES, PAGE_BYTES, bit_bytes, page_of

IntArray = npt.NDArray[np.int64]

# A center and a part in one number: the part stands in the lower bits.
PART_BITS = 32
PART_MASK = (1 << PART_BITS) - 1


@dataclass(frozen=True)
class Entries(SideBySide):
    """Entries of lists, each with the center and the part it stands in."""

    centers: IntArray
    parts: IntArray
    keys: KeyArray
    # What a list holds of every row beside its key, by the name of the column: see IndexRow.held.
    held: Mapping[str, npt.NDArray[Any]]

    @property
    def geometry(self) -> CodeArray:
        return self.held["geometry"]

    @property
    def marks(self) -> CodeArray:
        return self.held["marks"]

    def moved(self, centers: IntArray, parts: IntArray | None = None) -> Entries:
        """The same rows in other lists."""
        where = np.zeros(len(centers), dtype=np.int64) if parts is None else parts
        return replace(self, centers=centers, parts=where)

    def remarked(self, marks: CodeArray) -> Entries:
        """The same rows with other marks."""
        return replace(self, held={**self.held, "marks": marks})


@dataclass(frozen=True)
class Remarked(SideBySide):
    """Whole parts of lists whose keys have new marks."""

    centers: IntArray
    parts: IntArray
    keys: Ragged
    marks: Ragged


@dataclass(frozen=True)
class ListChange:
    """Parts to delete, entries, ordered by center and part, to write in whole parts, and parts to remark."""

    deleted_centers: IntArray
    deleted_parts: IntArray
    written: Entries
    remarked: Remarked


def join_entries(index: IndexRow, parts: list[Entries]) -> Entries:
    return no_entries(index).joined(parts)


def no_entries(index: IndexRow) -> Entries:
    none = np.zeros(0, dtype=np.int64)
    return Entries(
        none, none, index.keys.empty(), {name: column.empty() for name, column in index.held.items()}
    )


def entries_of(keys: KeyArray, held: Mapping[str, npt.NDArray[Any]], homes: IntArray) -> Entries:
    """Rows as entries of the lists of their homes, ids or positions of centers."""
    return Entries(homes, np.zeros(len(homes), dtype=np.int64), keys, held)


def change_lists(
    index: IndexRow,
    loaded: Entries,
    leaving: npt.NDArray[np.bool_],
    joining: Entries,
    rewritten: IntArray,
    remarked: Remarked,
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
    return ListChange(deleted >> PART_BITS, deleted & PART_MASK, _in_parts(index, written), remarked)


def pairs_of(centers: IntArray, parts: IntArray) -> IntArray:
    return (centers << PART_BITS) | parts


def _pairs(centers: IntArray, parts: IntArray) -> IntArray:
    return np.unique(pairs_of(centers, parts))


def entry_bytes(index: IndexRow, entries: Entries) -> IntArray:
    """The bytes that each entry takes in its part."""
    sizes = index.keys.sizes(entries.keys)
    for name, column in index.held.items():
        held = entries.held[name]
        sizes = sizes + (bit_bytes(column.bits) if isinstance(column, Bits) else column.stored(held))
    return sizes


def room(index: IndexRow) -> int:
    """The bytes that a part has for its entries."""
    return PAGE_BYTES - ARRAY_BYTES * len(index.included)


def _tails(index: IndexRow, loaded: Entries, kept: Entries, centers: IntArray) -> IntArray:
    """The part where entries that join each of `centers` go: its last one, or the next where that is full."""
    pairs = _pairs(loaded.centers, loaded.parts)
    if len(pairs) == 0:
        return np.zeros(len(centers), dtype=np.int64)
    sizes = entry_bytes(index, kept)
    at = np.searchsorted(pairs, pairs_of(kept.centers, kept.parts))
    used = np.bincount(at, weights=sizes, minlength=len(pairs))
    most = int(sizes.max(initial=0))
    # Pairs are ordered by center, then part: the last of a center stands before the first of the next.
    last = np.searchsorted(pairs, (centers + 1) << PART_BITS) - 1
    known = (last >= 0) & (pairs[np.maximum(last, 0)] >> PART_BITS == centers)
    part = pairs[np.maximum(last, 0)] & PART_MASK
    full = used[np.maximum(last, 0)] + most > room(index)
    tails: IntArray = np.where(known, part + full, 0).astype(np.int64)
    return tails


def _in_parts(index: IndexRow, entries: Entries) -> Entries:
    """Order entries by center and part; what is too much for a part goes on in the next."""
    order = np.argsort(pairs_of(entries.centers, entries.parts), kind="stable")
    ordered = entries.take(order)
    pages = page_of(pairs_of(ordered.centers, ordered.parts), entry_bytes(index, ordered), room(index))
    return ordered.moved(ordered.centers, ordered.parts + pages)


def new_parts(index: IndexRow, entries: Entries, next_part: IntArray) -> Entries:
    """Entries of lists in parts that begin where `next_part`, by position of the center, says."""
    return _in_parts(index, entries.moved(entries.centers, next_part[entries.centers]))
