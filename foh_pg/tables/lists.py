"""Lists of an index: read in parts and written in parts, so that a run touches only what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import LiteralString

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.ragged import Ragged
from foh_pg.postgres.binary_copy import INT4, Array, Column
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.page_parts import filling_order
from foh_pg.tables.parts import (
    Entries,
    IntArray,
    ListChange,
    Remarked,
    entry_bytes,
    no_entries,
    pairs_of,
    room,
)

# Parts whose marks are replaced by one statement.
PARTS_AT_ONCE = 500

# {held}: the columns of IndexRow.held.
WHOLE = "SELECT l.center, l.part, l.ids, {held} FROM {list} l WHERE l.center = ANY (%(centers)s)"
TAILS = """
SELECT DISTINCT ON (l.center) l.center, l.part, l.ids, {held} FROM {list} l
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


def read_lists(session: Session, index: IndexRow, centers: npt.NDArray[Any]) -> Entries:
    """All entries of the lists of these centers."""
    return _read(session, index, WHOLE, centers)


def read_tails(session: Session, index: IndexRow, centers: npt.NDArray[Any]) -> Entries:
    """The entries in the last part of each of these lists: where others can be appended."""
    return _read(session, index, TAILS, centers)


def _read(session: Session, index: IndexRow, text: LiteralString, centers: npt.NDArray[Any]) -> Entries:
    if len(centers) == 0:
        return no_entries(index)
    center, part, ids, *held = session.read_all(
        text, _columns(index), {"centers": centers.tolist()}, held=index.held
    )
    return Entries(
        np.repeat(center.astype(np.int64), ids.lengths),
        np.repeat(part.astype(np.int64), ids.lengths),
        index.keys.read(ids.values),
        {name: column.values for name, column in zip(index.held, held, strict=True)},
    )


def _columns(index: IndexRow) -> list[Column]:
    """The columns of a part of a list."""
    return [INT4, INT4, Array(index.keys.column), *(Array(column) for column in index.held.values())]


def read_members(
    session: Session, index: IndexRow, centers: npt.NDArray[Any]
) -> tuple[IntArray, IntArray, Ragged]:
    """The parts of the lists of these centers: of each the center, its number in the list, and the keys."""
    columns = [INT4, INT4, Array(index.keys.column)]
    center, part, keys = session.read_all(MEMBERS, columns, {"centers": centers.tolist()})
    return (
        center.astype(np.int64),
        part.astype(np.int64),
        Ragged(index.keys.read(keys.values), keys.bounds),
    )


# -- writing -------------------------------------------------------------------------------------------------


def write_parts(session: Session, index: IndexRow, entries: Entries) -> int:
    """Append parts of entries that are ordered by center and part, so that pages fill; return how many."""
    pairs = pairs_of(entries.centers, entries.parts)
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    bounds = np.append(begins, len(pairs))
    order = (
        filling_order(np.add.reduceat(entry_bytes(index, entries), begins), room(index))
        if len(pairs)
        else begins
    )
    values = (
        Ragged(values, bounds).take(order)
        for values in (entries.keys, *(entries.held[name] for name in index.held))
    )
    return session.copy_in(
        "list",
        ["center", "part", "ids", *index.held],
        _columns(index),
        [entries.centers[begins][order], entries.parts[begins][order], *values],
    )


def write_lists(session: Session, index: IndexRow, change: ListChange) -> None:
    if len(change.deleted_centers):
        session.execute(
            DELETE, {"centers": change.deleted_centers.tolist(), "parts": change.deleted_parts.tolist()}
        )
    write_parts(session, index, change.written)
    _remark(session, index, change.remarked)


def _remark(session: Session, index: IndexRow, new: Remarked) -> None:
    for start in range(0, len(new), PARTS_AT_ONCE):
        end = min(start + PARTS_AT_ONCE, len(new))
        values: dict[str, Any] = {
            "centers": new.centers[start:end].tolist(),
            "parts": new.parts[start:end].tolist(),
            "marks": _texts(new.marks.part(start, end), index.marks_column.bits),
        }
        session.execute(REMARK, values)


def _texts(codes: Ragged, bits: int) -> list[str]:
    """Arrays of bit strings as PostgreSQL reads them."""
    characters = np.full((len(codes.values), bits + 1), ord(","), dtype=np.uint8)
    characters[:, :bits] = np.unpackbits(codes.values, axis=1, count=bits) + ord("0")
    return ["{" + characters[low:high].tobytes()[:-1].decode() + "}" for low, high in _ranges(codes.bounds)]


def _ranges(bounds: npt.NDArray[Any]) -> list[tuple[int, int]]:
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
