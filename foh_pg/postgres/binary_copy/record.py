"""Rows of a composite type, kept as the bytes that PostgreSQL sends for them.

The bytes of a row are the number of its fields, and for each field the oid of its type, its length and its
value: two rows of one type without NULLs are equal where their bytes are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy.buffer import NDArray
from foh_pg.postgres.binary_copy.column import Column
from foh_pg.postgres.binary_copy.fixed import Fixed

# The number of fields, and before the value of each field its type and its length.
HEADER = 4
FIELD_HEADER = 8


class Record(Fixed):
    """Rows whose fields all have a fixed width: numpy `S` of the width of all fields together.

    Take one out with ``item.ljust(width, b"\\0")``: numpy drops trailing zeros from a single item. `oid` is
    that of the composite type, which arrays of it must name.
    """

    name = "record"

    def __init__(self, widths: list[int], oid: int) -> None:
        self.oid = oid
        self.width = HEADER + sum(FIELD_HEADER + width for width in widths)
        self.dtype = np.dtype(f"S{self.width}")

    def decode(self, items: NDArray) -> NDArray:
        return items

    def encode(self, values: Any) -> NDArray:
        given = np.asarray(values)
        if given.dtype != self.dtype:
            raise InputError(
                f"records of {self.width} bytes are of dtype {self.dtype}, and got {given.dtype}"
            )
        return given


class VaryingRecord(Column):
    """Rows whose fields differ in length: objects of bytes."""

    name = "record"

    def __init__(self, oid: int) -> None:
        self.oid = oid

    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> NDArray:
        self.check_present(lengths)
        whole = memoryview(np.ascontiguousarray(buffer).data)
        values = np.empty(len(offsets), dtype=object)
        ends = (offsets + lengths).tolist()
        values[:] = [bytes(whole[start:end]) for start, end in zip(offsets.tolist(), ends, strict=True)]
        return values

    def fields(self, values: Any) -> tuple[NDArray, NDArray]:
        listed = list(values)
        lengths = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
        return lengths, np.frombuffer(b"".join(listed), dtype=np.uint8)
