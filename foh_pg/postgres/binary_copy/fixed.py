"""Columns of a fixed width. Each has a numpy dtype: rows made of them alone are one structured array."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy.buffer import NDArray, as_bytes, gather
from foh_pg.postgres.binary_copy.column import Column, RowError


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
                f"a field of {lengths[wrong[0]]} bytes came, and a {self.name} of {self.width} bytes was "
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
                f"a {self.name} says {items['dimensions'][wrong[0]]} dimensions, and {self.dimensions} were "
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
                f"a {self.name} has {found} dimensions, and {self.dimensions} were expected "
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

    def empty(self) -> NDArray:
        return np.zeros((0, self.packed), dtype=np.uint8)

    def decode(self, items: NDArray) -> NDArray:
        wrong = np.flatnonzero(items["bits"] != self.bits)
        if len(wrong):
            raise RowError(f"a code has {items['bits'][wrong[0]]} bits, and {self.bits} were expected")
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


INT4 = Scalar("int4", ">i4", "i4")
INT8 = Scalar("int8", ">i8", "i8")
FLOAT4 = Scalar("float4", ">f4", "f4")
FLOAT8 = Scalar("float8", ">f8", "f8")
UUID = Uuid()
