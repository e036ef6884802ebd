"""What a column of any type can do: read its fields out of a buffer, and turn an array into fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy.buffer import NDArray

NULL = -1


class RowError(InputError):
    """A row that PostgreSQL sent is not of the form that was announced."""


class Column(ABC):
    """A column of a fixed or varying width in bytes (`width` is None where it varies)."""

    name: str
    width: int | None = None
    # That of the type, where its name does not tell it.
    oid: int | None = None
    # Whether a NULL is a value like others.
    takes_nulls = False

    @abstractmethod
    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> Any:
        """The values of the fields that begin at `offsets`."""

    @abstractmethod
    def fields(self, values: Any) -> tuple[NDArray, NDArray]:
        """The lengths of the fields (-1 for NULL) and their bytes, end to end."""

    def rows(self, values: Any) -> int:
        return len(values)

    def part(self, values: Any, start: int, end: int) -> Any:
        """The values of some consecutive rows."""
        return values[start:end]

    def check_present(self, lengths: NDArray) -> None:
        null = np.flatnonzero(lengths == NULL)
        if len(null):
            raise RowError(
                f"a {self.name} is NULL (row {null[0]} of this chunk): exclude such rows in the query"
            )
