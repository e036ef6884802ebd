"""The types of columns we move, each with its binary form.

A column knows how to read its fields out of a buffer, given where they are and how long, and how to turn an
array into fields. Fields of a fixed width also have a numpy dtype: rows made of them alone are one structured
array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from psycopg import postgres

from foh_pg.arrays.ragged import Ragged
from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy.buffer import (
    NDArray,
    as_bytes,
    gather,
    gather_int4,
    scatter,
    scatter_pieces,
)

NULL = -1


class RowError(InputError):
    """A row that PostgreSQL sent is not of the form that was announced."""


class Column(ABC):
    """A column of a fixed or varying width in bytes (`width` is None where it varies)."""

    name: str
    width: int | None = None

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


class Fixed(Column):
    """A column whose field is one item of a numpy dtype."""

    width: int
    dtype: np.dtype[Any]

    @abstractmethod
    def decode(self, items: NDArray) -> NDArray:
        """Values from items of `dtype`; raises RowError where one does not fit."""

    @abstractmethod
    def encode(self, values: Any) -> NDArray:
        """Items of `dtype` from values."""

    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> NDArray:
        self.check_lengths(lengths)
        items = gather(buffer, offsets, self.width)
        return self.decode(items.reshape(-1).view(self.dtype))

    def fields(self, values: Any) -> tuple[NDArray, NDArray]:
        items = self.encode(values)
        return np.full(len(items), self.width, dtype=np.int64), as_bytes(items).reshape(-1)

    def check_lengths(self, lengths: NDArray) -> None:
        wrong = np.flatnonzero(lengths != self.width)
        if len(wrong):
            self.check_present(lengths)
            raise RowError(
                f"a field of {lengths[wrong[0]]} bytes came where a {self.name} of {self.width} bytes was "
                f"expected (row {wrong[0]} of this chunk)"
            )


class Scalar(Fixed):
    """Numbers, and what numpy holds like numbers."""

    def __init__(self, name: str, wire: str, native: str) -> None:
        self.name = name
        self.dtype = np.dtype(wire)
        self.native = np.dtype(native)
        self.width = self.dtype.itemsize

    def decode(self, items: NDArray) -> NDArray:
        return items.astype(self.native)

    def encode(self, values: Any) -> NDArray:
        given = np.asarray(values)
        items = given.astype(self.dtype)
        # astype would wrap a bigint around in silence.
        if given.dtype != self.native and self.dtype.kind == "i" and not np.array_equal(items, given):
            raise InputError(f"a value does not fit a column of type {self.name}")
        return items


class Uuid(Fixed):
    """The sixteen bytes of a uuid as numpy `S16`, which sorts and compares as PostgreSQL does.

    Take them out with ``item.ljust(16, b"\\0")``: numpy drops trailing zeros from a single item.
    """

    name = "uuid"
    dtype = np.dtype("S16")
    width = 16

    def decode(self, items: NDArray) -> NDArray:
        return items

    def encode(self, values: Any) -> NDArray:
        given = np.asarray(values)
        if given.dtype == object:
            given = np.frombuffer(b"".join(value.bytes for value in given), dtype=self.dtype)
        if given.dtype != self.dtype:
            raise InputError(f"uuids are of dtype S16 or objects of uuid.UUID, and got {given.dtype}")
        return given


class Vector(Fixed):
    """pgvector's vector(d): a matrix of float32."""

    name = "vector"
    element = ">f4"

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.dtype = np.dtype(
            [("dimensions", ">i2"), ("unused", ">i2"), ("values", self.element, (dimensions,))]
        )
        self.width = self.dtype.itemsize

    def decode(self, items: NDArray) -> NDArray:
        wrong = np.flatnonzero((items["dimensions"] != self.dimensions) | (items["unused"] != 0))
        if len(wrong):
            raise RowError(
                f"a {self.name} says {items['dimensions'][wrong[0]]} dimensions where {self.dimensions} were "
                f"expected (row {wrong[0]} of this chunk)"
            )
        return items["values"].astype(np.float32)

    def encode(self, values: Any) -> NDArray:
        matrix = np.asarray(values)
        if matrix.ndim != 2 or matrix.shape[1] != self.dimensions:
            raise InputError(f"a {self.name}({self.dimensions}) cannot hold an array of shape {matrix.shape}")
        items = np.zeros(len(matrix), dtype=self.dtype)
        items["dimensions"] = self.dimensions
        items["values"] = matrix
        return items

    def check_lengths(self, lengths: NDArray) -> None:
        wrong = np.flatnonzero(lengths != self.width)
        if len(wrong):
            self.check_present(lengths)
            found = (lengths[wrong[0]] - 4) // np.dtype(self.element).itemsize
            raise RowError(
                f"a {self.name} has {found} dimensions where {self.dimensions} were expected "
                f"(row {wrong[0]} of this chunk)"
            )


class HalfVector(Vector):
    """pgvector's halfvec(d), read as float32."""

    name = "halfvec"
    element = ">f2"


class Bits(Fixed):
    """bit(k) as packed bytes, first bit first: a matrix of uint8 as `numpy.packbits` makes it."""

    def __init__(self, bits: int) -> None:
        self.name = f"bit({bits})"
        self.bits = bits
        self.packed = (bits + 7) // 8
        self.dtype = np.dtype([("bits", ">i4"), ("packed", "u1", (self.packed,))])
        self.width = self.dtype.itemsize

    def decode(self, items: NDArray) -> NDArray:
        wrong = np.flatnonzero(items["bits"] != self.bits)
        if len(wrong):
            raise RowError(f"a code has {items['bits'][wrong[0]]} bits where {self.bits} were expected")
        return np.ascontiguousarray(items["packed"])

    def encode(self, values: Any) -> NDArray:
        matrix = np.asarray(values)
        if matrix.ndim != 2 or matrix.shape[1] != self.packed or matrix.dtype != np.uint8:
            raise InputError(
                f"codes of {self.bits} bits are packed into uint8 of shape (n, {self.packed}), "
                f"and got {matrix.dtype} of shape {matrix.shape}"
            )
        spare = self.packed * 8 - self.bits
        if spare and np.any(matrix[:, -1] & ((1 << spare) - 1)):
            raise InputError(f"a code of {self.bits} bits has bits set beyond its end")
        items = np.zeros(len(matrix), dtype=self.dtype)
        items["bits"] = self.bits
        items["packed"] = matrix
        return items


class Text(Column):
    """text as an object array of str; equal strings of a chunk are one object.

    `encoding` is that of the connection (client_encoding).
    """

    name = "text"

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> NDArray:
        self.check_present(lengths)
        whole = memoryview(np.ascontiguousarray(buffer).data)
        decoded: dict[bytes, str] = {}
        values = np.empty(len(offsets), dtype=object)
        for i, (start, end) in enumerate(zip(offsets.tolist(), (offsets + lengths).tolist(), strict=True)):
            raw = bytes(whole[start:end])
            text = decoded.get(raw)
            if text is None:
                text = decoded[raw] = raw.decode(self.encoding)
            values[i] = text
        return values

    def fields(self, values: Any) -> tuple[NDArray, NDArray]:
        encoded = [value.encode(self.encoding) for value in values]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        return lengths, np.frombuffer(b"".join(encoded), dtype=np.uint8)


class Nullable(Column):
    """A column with NULLs: a pair (values, present). Where `present` is false, the value has no meaning."""

    def __init__(self, column: Column) -> None:
        self.name = column.name
        self.column = column

    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> tuple[Any, NDArray]:
        present = lengths != NULL
        found = self.column.read(buffer, offsets[present], lengths[present])
        if isinstance(found, Ragged):
            counts = np.zeros(len(present), dtype=np.int64)
            counts[present] = found.lengths
            return Ragged(found.values, np.concatenate([[0], np.cumsum(counts)])), present
        values = np.zeros((len(present), *found.shape[1:]), dtype=found.dtype)
        values[present] = found
        return values, present

    def fields(self, values: Any) -> tuple[NDArray, NDArray]:
        given, present = values
        lengths = np.full(len(present), NULL, dtype=np.int64)
        chosen = given if bool(np.all(present)) else _choose(given, present)
        lengths[present], payload = self.column.fields(chosen)
        return lengths, payload

    def rows(self, values: Any) -> int:
        return len(values[1])

    def part(self, values: Any, start: int, end: int) -> tuple[Any, NDArray]:
        return self.column.part(values[0], start, end), values[1][start:end]


class Array(Column):
    """An array as Ragged. NULL is read as empty, NULL elements are left out, dimensions are flattened."""

    def __init__(self, element: Column) -> None:
        self.name = f"{element.name}[]"
        self.element = element
        info = postgres.types.get("bit" if isinstance(element, Bits) else element.name)
        if info is None:
            raise InputError(f"arrays of {element.name} cannot be copied: their type has no fixed oid")
        self.oid = info.oid

    def read(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> Ragged:
        starts, counts = self._headers(buffer, offsets, lengths)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        width = self.element.width
        if width is not None and np.array_equal(
            starts - offsets + counts * (4 + width), np.maximum(lengths, 0)
        ):
            # No NULL among the elements: they stand at equal distances.
            rank = np.arange(bounds[-1]) - np.repeat(bounds[:-1], counts)
            at = np.repeat(starts, counts) + rank * (4 + width)
            sizes = gather_int4(buffer, at)
        else:
            at, sizes = self._walk(buffer, starts, counts)
        present = sizes != NULL
        if not np.all(present):
            row = np.repeat(np.arange(len(counts)), counts)[present]
            bounds = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(counts)))])
        return Ragged(self.element.read(buffer, at[present] + 4, sizes[present]), bounds)

    def _headers(self, buffer: NDArray, offsets: NDArray, lengths: NDArray) -> tuple[NDArray, NDArray]:
        """Where the elements of each array begin, and how many there are."""
        starts, counts = offsets.copy(), np.zeros(len(offsets), dtype=np.int64)
        some = np.flatnonzero(lengths != NULL)
        dimensions = np.zeros(len(offsets), dtype=np.int64)
        dimensions[some] = gather_int4(buffer, offsets[some])
        starts[some] += 12 + 8 * dimensions[some]
        filled = np.flatnonzero(dimensions > 0)
        counts[filled] = 1
        for axis in range(int(dimensions.max(initial=0))):
            filled = np.flatnonzero(dimensions > axis)
            counts[filled] *= gather_int4(buffer, offsets[filled] + 12 + 8 * axis)
        return starts, counts

    def _walk(self, buffer: NDArray, starts: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
        """Where each element begins and how long it is: the first of every array, then the second, ..."""
        bounds = np.cumsum(counts) - counts
        at = np.zeros(int(counts.sum()), dtype=np.int64)
        sizes = np.zeros_like(at)
        cursor = starts.copy()
        for rank in range(int(counts.max(initial=0))):
            rows = np.flatnonzero(counts > rank)
            size = gather_int4(buffer, cursor[rows])
            at[bounds[rows] + rank] = cursor[rows]
            sizes[bounds[rows] + rank] = size
            cursor[rows] += 4 + np.maximum(size, 0)
        return at, sizes

    def fields(self, values: Ragged) -> tuple[NDArray, NDArray]:
        counts = values.lengths
        sizes, payload = self.element.fields(values.values)
        cells = np.empty(len(payload) + 4 * len(sizes), dtype=np.uint8)
        widths = np.maximum(sizes, 0) + 4
        ends = np.concatenate([[0], np.cumsum(widths)])
        scatter(cells, ends[:-1], as_bytes(sizes.astype(">i4")))
        scatter_pieces(cells, ends[:-1] + 4, widths - 4, payload)

        body = ends[values.bounds[1:]] - ends[values.bounds[:-1]]
        header = np.where(counts > 0, 20, 12)
        lengths = header + body
        out = np.empty(int(lengths.sum()), dtype=np.uint8)
        at = np.cumsum(lengths) - lengths
        filled = counts > 0
        items = self._header_items(counts)
        scatter(out, at, as_bytes(items[:, :3]))
        scatter(out, at[filled], as_bytes(items[filled]))
        scatter_pieces(out, at + header, body, cells)
        return lengths, out

    def _header_items(self, counts: NDArray) -> NDArray:
        """Number of dimensions, no NULLs, type of the elements, length, first subscript."""
        items = np.zeros((len(counts), 5), dtype=">i4")
        items[:, 0], items[:, 2], items[:, 3], items[:, 4] = counts > 0, self.oid, counts, 1
        return items

    def rows(self, values: Ragged) -> int:
        return values.rows

    def part(self, values: Ragged, start: int, end: int) -> Ragged:
        return values.part(start, end)


def _choose(values: Any, present: NDArray) -> Any:
    return values.choose(present) if isinstance(values, Ragged) else np.asarray(values)[present]


INT2 = Scalar("int2", ">i2", "i2")
INT4 = Scalar("int4", ">i4", "i4")
INT8 = Scalar("int8", ">i8", "i8")
FLOAT4 = Scalar("float4", ">f4", "f4")
FLOAT8 = Scalar("float8", ">f8", "f8")
BOOL = Scalar("bool", "?", "?")
CHAR = Scalar("char", "S1", "S1")
UUID = Uuid()
TEXT = Text()
