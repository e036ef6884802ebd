"""Label sets of rows: how they are held, grouped and counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

IdArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelSets:
    """Label ids of many rows, stored end to end.

    Row `i` has the ids `ids[offsets[i]:offsets[i + 1]]`, ascending and without duplicates.

    >>> sets = LabelSets.of([[2, 0], [], [2]])
    >>> sets.counts, sets.multi_hot(3)[0]
    (array([2, 0, 1]), array([1, 0, 1], dtype=uint8))
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
    def named(cls, rows: Iterable[Iterable[str]], numbers: Mapping[str, int]) -> LabelSets:
        """Build from one iterable of names per row; names without a number are left out."""
        return cls.of([numbers[name] for name in row if name in numbers] for row in rows)

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
    """Rows grouped by equal label sets."""

    # The distinct sets, in order of first appearance.
    sets: LabelSets
    # The first row of each group.
    first: IdArray
    # The group of each row.
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
