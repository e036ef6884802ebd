"""Checks of what comes in: rows, keys; and the rows kept while a learner warms up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

FloatArray = npt.NDArray[np.floating[Any]]
KeyArray = npt.NDArray[Any]


def check_rows(X: npt.ArrayLike, dimensions: int | None, dtype: npt.DTypeLike) -> FloatArray:
    """Return rows as a finite 2-d array of `dtype`, or say what is wrong with which row."""
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(f"rows must be a 2-d array (rows, dimensions), this one has {array.ndim} dimensions")
    if array.dtype.kind not in "fiub":
        raise InputError(f"rows must be numbers, not {array.dtype}")
    if array.shape[1] == 0:
        raise InputError("rows must have at least one dimension")
    if dimensions is not None and array.shape[1] != dimensions:
        raise InputError(f"the learner has {dimensions} dimensions, these rows have {array.shape[1]}")
    with np.errstate(over="ignore"):
        rows: FloatArray = np.ascontiguousarray(array, dtype=dtype)
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise InputError(f"row {row} holds {array[row, column]} in dimension {column}: rows must be finite")
    return rows


def check_keys(keys: npt.ArrayLike | None, rows: int, first: int) -> KeyArray:
    """Return the keys of the rows; without any, the running numbers from `first`."""
    if keys is None:
        return np.arange(first, first + rows, dtype=np.int64)
    array = np.asarray(keys)
    if array.ndim != 1 or len(array) != rows:
        raise InputError(f"keys must be a 1-d array with one key per row: {array.shape} for {rows} rows")
    if array.dtype.kind not in "iuUS":
        raise InputError(
            f"keys must be integers, strings or bytes, not {array.dtype}: they are saved without pickle"
        )
    return array


def join_keys(old: KeyArray, new: KeyArray) -> KeyArray:
    """Put keys end to end; keys of two kinds would silently become strings."""
    if len(old) == 0:
        return new
    if len(new) == 0:
        return old
    if (old.dtype.kind in "iu") != (new.dtype.kind in "iu") or (old.dtype.kind == "S") != (
        new.dtype.kind == "S"
    ):
        raise InputError(
            f"keys so far are {old.dtype}, these are {new.dtype}: give keys of one kind, or never any"
        )
    joined = np.concatenate([old, new])
    if joined.dtype.kind == "f":
        raise InputError(f"keys so far are {old.dtype}, these are {new.dtype}: no integer type holds both")
    return joined


class KeptRows(Protocol):
    """Past rows of a stream, known by their keys."""

    keys: KeyArray

    def __len__(self) -> int: ...

    def without(self, keys: KeyArray) -> Self:
        """Give the rows whose keys are not among `keys`."""
        ...


@dataclass
class WarmRows:
    """Labelled rows kept until there are enough of them for a mean worth freezing."""

    rows: FloatArray
    sets: LabelSets
    keys: KeyArray

    @classmethod
    def none(cls, dimensions: int, dtype: npt.DTypeLike) -> WarmRows:
        """Start empty."""
        return cls(np.zeros((0, dimensions), dtype=dtype), LabelSets.empty(), np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def append(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> WarmRows:
        """Return these rows followed by the given ones."""
        return WarmRows(
            np.concatenate([self.rows, rows]) if len(self) else rows,
            self.sets.append(sets),
            join_keys(self.keys, keys),
        )

    def without(self, keys: KeyArray) -> WarmRows:
        """Return the rows whose keys are not among `keys`."""
        kept = ~np.isin(self.keys, keys)
        return WarmRows(self.rows[kept], self.sets.take(kept), self.keys[kept])
