"""The base of classes that are columns side by side: what is done to their rows is done to every column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.ragged import Ragged


@dataclass(frozen=True)
class SideBySide:
    """Columns with one value per row: arrays, or Ragged where a row has any number of values.

    A field may also hold several columns, as a mapping of their names.

    >>> @dataclass(frozen=True)
    ... class Points(SideBySide):
    ...     x: npt.NDArray[Any]
    ...     names: Ragged
    >>> points = Points(np.array([1, 2, 3]), Ragged.of([["a"], ["b", "c"], []], dtype=object))
    >>> chosen = points.take(np.array([True, False, True]))
    >>> chosen.x, chosen.names.lengths
    (array([1, 3]), array([1, 0]))
    >>> len(points.joined([chosen]))
    5
    """

    # Fields that are no columns: the same for all rows.
    shared: ClassVar[frozenset[str]] = frozenset()

    def __len__(self) -> int:
        first = getattr(self, self._columns()[0])
        return first.rows if isinstance(first, Ragged) else len(first)

    def take(self, chosen: npt.NDArray[Any]) -> Self:
        """Some of the rows, by position or by a mask."""
        if chosen.dtype == bool:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        return self._with({name: _take(getattr(self, name), chosen) for name in self._columns()})

    def joined(self, others: Sequence[Self]) -> Self:
        """These rows and then those of the others, whose shared fields are the same."""
        if not others:
            return self
        every = [self, *others]
        return self._with({name: join([getattr(one, name) for one in every]) for name in self._columns()})

    def _columns(self) -> list[str]:
        return [part.name for part in fields(self) if part.name not in self.shared]

    def _with(self, columns: dict[str, Any]) -> Self:
        return type(self)(**{name: getattr(self, name) for name in self.shared}, **columns)


def _take(column: Any, chosen: npt.NDArray[np.int64]) -> Any:
    if isinstance(column, Mapping):
        return {name: _take(each, chosen) for name, each in column.items()}
    return column.take(chosen) if isinstance(column, Ragged) else column[chosen]


def join(parts: Sequence[Any]) -> Any:
    """The values of one column, end to end; a mapping or a tuple has several columns."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {name: join([part[name] for part in parts]) for name in first}
    if isinstance(first, Ragged):
        return Ragged.join(parts)
    return tuple(map(join, zip(*parts, strict=True))) if isinstance(first, tuple) else np.concatenate(parts)
