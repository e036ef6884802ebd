"""Names of labels: how those of a batch are read, and which number each has."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import IdArray, LabelSets
from foh_pg.errors import InputError

Labels = Sequence[Any] | npt.NDArray[Any] | None


@dataclass(frozen=True)
class Vocabulary:
    """The label names met so far; a name's position is its id and never changes.

    Labels of a batch may be given as

    - one set, list or tuple of names per row (names are strings or integers; `None` inside is ignored),
    - one name per row (a list or a 1-d array of strings or integers),
    - a multi-hot array (n, c) of zeros and ones, whose columns are named `"0"`, `"1"`, ...,
    - `None`: no row has a label.

    Integers are names too: `3` and `"3"` are one label. Case counts. New names of one batch are numbered in
    order (integers by value, then text), so that the order inside a set does not matter.

    >>> sets, names = Vocabulary().read([{"web", "python"}, None, ["web", "web"]])
    >>> names.names
    ('python', 'web')
    >>> sets.ids, sets.offsets
    (array([0, 1, 1]), array([0, 2, 2, 3]))
    """

    names: tuple[str, ...] = ()

    @cached_property
    def index(self) -> dict[str, int]:
        """Id of each name."""
        return {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def read(self, labels: Labels, rows: int | None = None) -> tuple[LabelSets, Vocabulary]:
        """Number the labels of a batch of so many rows; return them and the vocabulary with the new names."""
        if _is_multi_hot(labels):
            hot = _check_multi_hot(labels, rows)
            grown = self.grow([str(j) for j in range(hot.shape[1])])
            columns = np.array([grown.index[str(j)] for j in range(hot.shape[1])], dtype=np.int64)
            return _renumbered(LabelSets.from_multi_hot(hot), columns), grown
        if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iu":
            _check_length(len(labels), rows)
            values, of_row = np.unique(labels, return_inverse=True)
            grown = self.grow(str(value) for value in values.tolist())
            numbers = np.array([grown.index[str(value)] for value in values.tolist()], dtype=np.int64)
            return LabelSets.single(numbers[of_row.reshape(-1)] if len(labels) else []), grown
        named = _read_names(labels, rows)
        seen = {name for row in named for name in row}
        grown = self.grow(sorted((name for name in seen if name not in self.index), key=_name_order))
        return LabelSets.of([grown.index[name] for name in row] for row in named), grown

    def find(self, labels: Labels, rows: int | None = None) -> LabelSets:
        """Number the labels of a batch, ignoring names never met."""
        sets, grown = self.read(labels, rows)
        if len(grown) == len(self):
            return sets
        known = np.arange(len(grown), dtype=np.int64)
        known[len(self) :] = -1
        return sets.renumber(known)

    def grow(self, names: Iterable[str]) -> Vocabulary:
        """Append the names that are not there yet."""
        new = [name for name in dict.fromkeys(names) if name not in self.index]
        return Vocabulary(self.names + tuple(new)) if new else self


def _renumbered(sets: LabelSets, columns: IdArray) -> LabelSets:
    if np.array_equal(columns, np.arange(len(columns))):
        return sets
    return LabelSets.of(columns[sets.row(i)].tolist() for i in range(len(sets)))


def _is_multi_hot(labels: Labels) -> bool:
    return isinstance(labels, np.ndarray) and labels.ndim == 2


def _check_multi_hot(labels: Labels, rows: int | None) -> npt.NDArray[Any]:
    hot = np.asarray(labels)
    if hot.dtype.kind not in "biuf":
        raise InputError(f"a 2-d label array must be multi-hot (zeros and ones), this one holds {hot.dtype}")
    wrong = np.argwhere((hot != 0) & (hot != 1))
    if len(wrong):
        i, j = wrong[0]
        raise InputError(
            f"a 2-d label array must be multi-hot, but row {i}, column {j} holds {hot[i, j]}: "
            "pass one label per row as a 1-d array"
        )
    _check_length(len(hot), rows)
    return hot


def _check_length(given: int, rows: int | None) -> None:
    if rows is not None and given != rows:
        raise InputError(f"{given} label sets were given for {rows} rows")


def _read_names(labels: Labels, rows: int | None) -> list[list[str]]:
    if labels is None:
        return [[] for _ in range(rows or 0)]
    if (
        isinstance(labels, (str, bytes, dict))
        or not hasattr(labels, "__len__")
        or not hasattr(labels, "__iter__")
    ):
        raise InputError(f"labels must be a sequence with one label set per row, not {type(labels).__name__}")
    if isinstance(labels, (set, frozenset)):
        raise InputError("labels must be in the order of the rows, a set has no order")
    _check_length(len(labels), rows)
    items = labels.tolist() if isinstance(labels, np.ndarray) else labels
    return [_read_row(i, item) for i, item in enumerate(items)]


def _read_row(row: int, item: Any) -> list[str]:
    if item is None:
        return []
    if isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
        return [_read_name(row, item)]
    return [_read_name(row, name) for name in item if name is not None]


def _read_name(row: int, name: Any) -> str:
    if isinstance(name, str):
        if "\0" in name:
            raise InputError(f"row {row} has the label {name!r}: a label cannot hold a NUL character")
        return str(name)
    if isinstance(name, (float, np.floating)) and float(name).is_integer():
        return str(int(name))
    if not isinstance(name, (bool, np.bool_)):
        try:
            return str(operator.index(name))
        except TypeError:
            pass
    raise InputError(f"row {row} has the label {name!r}: labels are strings or integers")


def _name_order(name: str) -> tuple[int, int, str]:
    digits = name.removeprefix("-")
    return (0, int(name), name) if digits.isascii() and digits.isdecimal() else (1, 0, name)
