"""Columns that are only carried from one table to another, as PostgreSQL sends them."""

from __future__ import annotations

from typing import Any

import numpy as np

from foh_pg.postgres.binary_copy.buffer import NDArray, gather
from foh_pg.postgres.binary_copy.column import NULL, Column

# By the name that format_type gives: the name of psycopg, and the bytes of a value where all have the same.
TYPES: dict[str, tuple[str, int | None]] = {
    "smallint": ("int2", 2),
    "integer": ("int4", 4),
    "bigint": ("int8", 8),
    "numeric": ("numeric", None),
    "real": ("float4", 4),
    "double precision": ("float8", 8),
    "boolean": ("bool", 1),
    "text": ("text", None),
    "uuid": ("uuid", 16),
    "date": ("date", 4),
    "timestamp without time zone": ("timestamp", 8),
    "timestamp with time zone": ("timestamptz", 8),
}


class Raw(Column):
    """Values of one of these types, and NULLs.

    Values of a fixed width are a structured array of `present` and `value`, others objects: bytes, or None.
    """

    takes_nulls = True

    def __init__(self, type_name: str) -> None:
        self.name, self.width = TYPES[type_name]
        self.dtype: Any = (
            object if self.width is None else np.dtype([("present", "?"), ("value", f"V{self.width}")])
        )

    def empty(self) -> NDArray:
        return np.empty(0, dtype=self.dtype)

    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> NDArray:
        present = lengths != NULL
        if self.width is not None:
            fixed = np.zeros(len(offsets), dtype=self.dtype)
            fixed["present"] = present
            found = np.ascontiguousarray(gather(buffer, offsets[present], self.width))
            fixed["value"][present] = found.reshape(-1).view(f"V{self.width}")
            return fixed
        whole = memoryview(np.ascontiguousarray(buffer).data)
        values = np.empty(len(offsets), dtype=object)
        starts, ends = offsets.tolist(), (offsets + lengths).tolist()
        for at in np.flatnonzero(present).tolist():
            values[at] = bytes(whole[starts[at] : ends[at]])
        return values

    def fields(self, values: Any) -> tuple[NDArray, NDArray]:
        if self.width is not None:
            present = values["present"]
            payload = np.ascontiguousarray(values["value"][present]).view(np.uint8).reshape(-1)
            return np.where(present, self.width, NULL).astype(np.int64), payload
        lengths = self._lengths(values)
        kept = [value for value in values.tolist() if value is not None]
        return lengths, np.frombuffer(b"".join(kept), dtype=np.uint8)

    def stored(self, values: NDArray) -> NDArray:
        """Bytes of each value in an array on disk, at the most: a bit for NULL, and what aligns it."""
        if self.width is not None:
            return np.full(len(values), self.width + 1, dtype=np.int64)
        return 5 + 4 * -(-np.maximum(self._lengths(values), 0) // 4)

    def _lengths(self, values: NDArray) -> NDArray:
        found = (NULL if value is None else len(value) for value in values.tolist())
        return np.fromiter(found, dtype=np.int64, count=len(values))
