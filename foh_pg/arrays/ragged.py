from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Ragged(NamedTuple):
    """Arrays of different lengths, end to end: array i is ``values[bounds[i]:bounds[i + 1]]``."""

    values: np.ndarray[Any, Any]
    bounds: np.ndarray[Any, Any]

    @classmethod
    def of(cls, arrays: Sequence[Any], dtype: Any = None) -> Ragged:
        """From a sequence of sequences; `dtype` is needed where all of them may be empty."""
        lengths = np.fromiter((len(array) for array in arrays), dtype=np.int64, count=len(arrays))
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        parts = [np.asarray(array, dtype=dtype) for array in arrays if len(array)]
        values = np.concatenate(parts) if parts else np.empty(0, dtype=dtype)
        return cls(values, bounds)

    @property
    def lengths(self) -> np.ndarray[Any, Any]:
        return np.diff(self.bounds)

    @property
    def rows(self) -> int:
        return len(self.bounds) - 1

    def row(self, i: int) -> np.ndarray[Any, Any]:
        return self.values[self.bounds[i] : self.bounds[i + 1]]

    def part(self, start: int, end: int) -> Ragged:
        """The arrays `start` to `end`."""
        bounds = self.bounds[start : end + 1]
        return Ragged(self.values[bounds[0] : bounds[-1]], bounds - bounds[0])

    def choose(self, rows: np.ndarray[Any, Any]) -> Ragged:
        """The arrays where the mask `rows` is true."""
        lengths = self.lengths
        return Ragged(self.values[np.repeat(rows, lengths)], np.concatenate([[0], np.cumsum(lengths[rows])]))

    def take(self, rows: np.ndarray[Any, Any]) -> Ragged:
        """The arrays at the given positions."""
        lengths = self.lengths[rows]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(bounds[-1]) + np.repeat(self.bounds[rows] - bounds[:-1], lengths)
        return Ragged(self.values[at], bounds)

    @staticmethod
    def join(parts: Sequence[Ragged]) -> Ragged:
        """The arrays of all parts, of which there is at least one."""
        lengths = np.concatenate([part.lengths for part in parts])
        # An empty part says nothing of the type of the values.
        values = [part.values for part in parts if len(part.values)] or [parts[0].values]
        return Ragged(np.concatenate(values), np.concatenate([[0], np.cumsum(lengths)]))

    def each(self) -> Iterator[np.ndarray[Any, Any]]:
        return (self.row(i) for i in range(self.rows))
