"""Rows of a composite type as parameters, in the bytes that PostgreSQL sends and reads for them.

The statement says the type, as in ``%(keys)s::foh.products_key[]``, so none of this has to know its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Any

from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format


class PackedRecord(bytes):
    """One row."""


class PackedRecords(list[PackedRecord]):
    """An array of rows; `element` is the oid of their type, which a binary array must name."""

    def __init__(self, rows: Iterable[PackedRecord], element: int) -> None:
        super().__init__(rows)
        self.element = element


class PackedRecordDumper(Dumper):
    """Type 0: the server takes it from the cast around the parameter."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: PackedRecord) -> Buffer | None:
        return bytes(obj)


class PackedRecordsDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: PackedRecords) -> Buffer | None:
        if not obj:
            return pack("!iiI", 0, 0, obj.element)
        # One dimension, no NULLs, the type of an element, the length and where counting starts.
        header = pack("!iiIii", 1, 0, obj.element, len(obj), 1)
        return header + b"".join(part for row in obj for part in (pack("!i", len(row)), row))


def register(connection: Any) -> None:
    """Let a connection send such rows."""
    connection.adapters.register_dumper(PackedRecord, PackedRecordDumper)
    connection.adapters.register_dumper(PackedRecords, PackedRecordsDumper)
