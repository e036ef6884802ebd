"""Rows of the application's table, in binary: by key, page by page, or a sample of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import LiteralString

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.geometry import LONGEST, Vectors
from foh_pg.postgres.binary_copy import Column, Nullable, Vector
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray

# Keys passed in one statement.
KEYS_AT_ONCE = 10_000

# The updater does not read the application's table itself: what its owner attached to it would run with
# the updater's rights. The functions of the index run with the owner's.
# {read}: the columns that are read.
BY_KEY = "SELECT {read} FROM {rows}(keys => %(keys)s::{key_type}[])"
SAMPLED = "SELECT {read} FROM {rows}(sampled => %(bound)s::bigint)"
# A part of the rows that never train (see Keys.shares).
HELD_OUT = "SELECT {read} FROM {rows}(sampled => %(bound)s::bigint, held_out => %(held_out)s::bigint)"
PAGE = "SELECT {read} FROM {rows}(after => %(after)s::{key_type}, wanted => %(rows)s::int)"


@dataclass(frozen=True)
class Rows(SideBySide):
    """Rows with a usable embedding; `labels` is empty for each row where the index has none."""

    keys: KeyArray
    vectors: Vectors
    labels: Ragged
    # The columns of IndexRow.included_columns.
    included: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """Rows in the order of the key."""

    rows: Rows
    # Keys of far rows, which are not among `rows`.
    far: KeyArray
    # The key to go on after.
    after: Any
    # Whether there may be more.
    more: bool


def no_rows(index: IndexRow) -> Rows:
    return Rows(
        index.keys.empty(),
        np.zeros((0, index.dimensions), dtype=np.float32),
        Ragged(np.empty(0, dtype=object), np.zeros(1, dtype=np.int64)),
        {name: column.empty() for name, column in index.included_columns.items()},
    )


def join_rows(index: IndexRow, parts: list[Rows]) -> Rows:
    return parts[0].joined(parts[1:]) if parts else no_rows(index)


def read_by_key(session: Session, index: IndexRow, keys: KeyArray) -> Rows:
    """The rows of these keys that are there and not far, ordered by key as numpy sorts."""
    return read_with_far(session, index, keys)[0]


def read_with_far(session: Session, index: IndexRow, keys: KeyArray) -> tuple[Rows, KeyArray]:
    """The same, and the keys of those rows that are far."""
    parts = []
    for start in range(0, len(keys), KEYS_AT_ONCE):
        listed = index.keys.parameters(keys[start : start + KEYS_AT_ONCE])
        parts.append(_read(session, index, BY_KEY, {"keys": listed})[0])
    rows = join_rows(index, parts)
    # In one order, whatever the plan of the query: the same rows then make the same run.
    order = np.argsort(rows.keys, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        rows = rows.take(order)
    far = _far(rows.vectors)
    return rows.take(~far), rows.keys[far]


def read_sample(session: Session, index: IndexRow, share: float) -> Rows:
    """About this share of all rows that are not far, in the order of their keys; always the same ones."""
    rows, _ = _read(session, index, SAMPLED, {"bound": round(share * 2**32)})
    return rows.take(~_far(rows.vectors))


def read_held_out(session: Session, index: IndexRow, held_out: float, share: float) -> Rows:
    """About this share of the rows that never train, in the order of their keys; always the same ones."""
    bounds = {"held_out": round(held_out * 2**32), "bound": round(share * 2**32)}
    rows, _ = _read(session, index, HELD_OUT, bounds)
    return rows.take(~_far(rows.vectors))


def read_page(session: Session, index: IndexRow, after: Any, wanted: int) -> Page:
    """The next rows; a row whose embedding is there but cannot be used counts as read."""
    rows, usable = _read(session, index, PAGE, {"after": after, "rows": wanted})
    if len(rows) == 0:
        return Page(rows, index.keys.empty(), after, False)
    far = _far(rows.vectors)
    last = index.keys.parameters(rows.keys[-1:])[0]
    return Page(rows.take(usable & ~far), rows.keys[far], last, len(rows) == wanted)


def count_rows(session: Session) -> int:
    """How many rows have an embedding."""
    count: int = session.one("SELECT {unchanged}(counted => true)")[0]
    return count


def _far(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Which of these embeddings are too long; those of unusable rows are zeros, and are not."""
    if vectors.size == 0 or max(vectors.max(), -vectors.min()) <= LONGEST / vectors.shape[1]:
        return np.zeros(len(vectors), dtype=bool)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.asarray(lengths > LONGEST)


def _read(
    session: Session, index: IndexRow, text: LiteralString, parameters: dict[str, Any]
) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """Rows, and which of them have a usable vector; the others have zeros."""
    columns: dict[str, Column] = {"key": index.keys.column, "x": Nullable(Vector(index.dimensions))}
    if index.labels is not None:
        columns["labels"] = index.labels_column
    columns |= index.included_columns
    read = session.read_all(text, list(columns.values()), parameters, read=columns)
    found = dict(zip(columns, read, strict=True))
    vectors, usable = found["x"]
    none = Ragged(np.empty(0, dtype=object), np.zeros(len(usable) + 1, dtype=np.int64))
    included = {name: found[name] for name in index.included_columns}
    return Rows(index.keys.read(found["key"]), vectors, found.get("labels", none), included), usable
