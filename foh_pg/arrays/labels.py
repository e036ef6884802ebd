"""Label sets of rows: how they are read, numbered, grouped and counted."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError

IdArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelSets:
    """Label ids of many rows, stored end to end.

    Row `i` has the ids `ids[offsets[i]:offsets[i + 1]]`, ascending and without duplicates.

    Parameters
    ----------
    ids : array of int64
        The ids of all rows, one row after the other.
    offsets : array of int64, one longer than the number of rows
        Where each row begins.

    Examples
    --------
    >>> sets = LabelSets.of([[2, 0], [], [2]])
    >>> sets.counts
    array([2, 0, 1])
    >>> sets.multi_hot(3)
    array([[1, 0, 1],
           [0, 0, 0],
           [0, 0, 1]], dtype=uint8)
    """

    ids: IdArray
    offsets: IdArray

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> LabelSets:
        """Build from one iterable of ids per row, in any order and with duplicates."""
        ordered = [sorted(set(row)) for row in rows]
        offsets = np.zeros(len(ordered) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in ordered], out=offsets[1:])
        return cls(np.array([label for row in ordered for label in row], dtype=np.int64), offsets)

    @classmethod
    def from_multi_hot(cls, array: npt.ArrayLike) -> LabelSets:
        """Build from an (n, c) array whose nonzero entries mark the labels of a row."""
        hot = np.asarray(array) != 0
        offsets = np.zeros(len(hot) + 1, dtype=np.int64)
        np.cumsum(np.count_nonzero(hot, axis=1), out=offsets[1:])
        return cls(np.nonzero(hot)[1].astype(np.int64), offsets)

    @classmethod
    def single(cls, ids: npt.ArrayLike) -> LabelSets:
        """Build from exactly one id per row."""
        ids = np.asarray(ids, dtype=np.int64)
        return cls(ids, np.arange(len(ids) + 1, dtype=np.int64))

    @classmethod
    def empty(cls, rows: int = 0) -> LabelSets:
        """Build `rows` rows without labels."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(rows + 1, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSets):
            return NotImplemented
        return np.array_equal(self.ids, other.ids) and np.array_equal(self.offsets, other.offsets)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def counts(self) -> IdArray:
        """Number of labels of each row."""
        return np.diff(self.offsets)

    def row(self, i: int) -> IdArray:
        """Ids of one row."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def take(self, rows: npt.ArrayLike) -> LabelSets:
        """Select rows by index or by a boolean mask."""
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        counts = self.counts[chosen]
        offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        position = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], counts)
        return LabelSets(self.ids[position], offsets)

    def append(self, other: LabelSets) -> LabelSets:
        """Put the rows of `other` after these."""
        return LabelSets(
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]]),
        )

    def renumber(self, new_ids: IdArray) -> LabelSets:
        """Replace id `i` by `new_ids[i]`, dropping the ids whose new one is negative.

        `new_ids` must be ascending where it is not negative, so that rows stay sorted.
        """
        renamed = new_ids[self.ids]
        kept = renamed >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return LabelSets(renamed[kept], before[self.offsets].astype(np.int64))

    def multi_hot(self, columns: int, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
        """Spread to an (n, columns) array of zeros and ones."""
        hot = np.zeros((len(self), columns), dtype=dtype)
        hot[np.repeat(np.arange(len(self)), self.counts), self.ids] = 1
        return hot

    def occurrences(self, columns: int) -> IdArray:
        """Count the rows that carry each label."""
        return np.bincount(self.ids, minlength=columns).astype(np.int64)

    def group(self) -> Groups:
        """Group rows by equal label sets, in order of first appearance.

        Examples
        --------
        >>> groups = LabelSets.of([[1], [0, 2], [1], [2, 0]]).group()
        >>> groups.first, groups.of_row
        (array([0, 1]), array([0, 1, 0, 1]))
        """
        for salt in range(8):
            groups = self._group_by_hash(salt)
            if groups is not None:
                return groups
        raise AssertionError("eight hashes of the label sets collided")  # pragma: no cover

    def _group_by_hash(self, salt: int) -> Groups | None:
        before = np.concatenate([[np.uint64(0)], np.cumsum(_scramble(self.ids, salt), dtype=np.uint64)])
        hashes = before[self.offsets[1:]] - before[self.offsets[:-1]] + self.counts.astype(np.uint64)
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        of_row = rank[inverse.reshape(-1)]
        first = first[order]
        # A hash only proposes: two sets are one group when their ids are equal.
        if self.take(first[of_row]) != self:
            return None
        return Groups(self.take(first), first, of_row)


@dataclass(frozen=True)
class Groups:
    """Rows grouped by equal label sets.

    Attributes
    ----------
    sets : LabelSets
        The distinct sets, in order of first appearance.
    first : array of int64
        The first row of each group.
    of_row : array of int64
        The group of each row.
    """

    sets: LabelSets
    first: IdArray
    of_row: IdArray

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def sizes(self) -> IdArray:
        """Number of rows in each group."""
        return np.bincount(self.of_row, minlength=len(self)).astype(np.int64)


def _scramble(ids: IdArray, salt: int) -> npt.NDArray[np.uint64]:
    """Map ids to well-mixed 64-bit words (the finalizer of splitmix64)."""
    z = ids.astype(np.uint64) + np.uint64(salt * len(ids) + 1)
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


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

    Examples
    --------
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
        """Number the labels of a batch; return them and the vocabulary with the new names.

        Parameters
        ----------
        labels : sets of names, names, a multi-hot array or None
            The labels of the batch.
        rows : int, optional
            How many rows the batch has; another number of label sets is an error.
        """
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

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the names as a plain array."""
        return {"names": np.array(self.names, dtype=np.str_)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Vocabulary:
        """Restore what `to_arrays` gave."""
        return cls(tuple(str(name) for name in arrays["names"]))


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
