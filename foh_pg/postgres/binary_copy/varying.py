"""Columns whose fields differ in length: text, arrays, and any column with NULLs."""

from __future__ import annotations

from typing import Any

import numpy as np
from psycopg import postgres

from foh_pg.arrays.ragged import Ragged
from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy.buffer import NDArray, as_bytes, gather_int4, scatter, scatter_pieces
from foh_pg.postgres.binary_copy.column import NULL, Column
from foh_pg.postgres.binary_copy.fixed import Bits


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
        self.element_oid = _type_oid(element)

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
        if self.element.takes_nulls:
            present[:] = True
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
        items = np.zeros((len(counts), 5), dtype=">u4")
        items[:, 0], items[:, 2], items[:, 3], items[:, 4] = counts > 0, self.element_oid, counts, 1
        return items

    def rows(self, values: Ragged) -> int:
        return values.rows

    def part(self, values: Ragged, start: int, end: int) -> Ragged:
        return values.part(start, end)


def _type_oid(element: Column) -> int:
    if element.oid is not None:
        return element.oid
    info = postgres.types.get("bit" if isinstance(element, Bits) else element.name)
    if info is None:
        raise InputError(f"arrays of {element.name} cannot be copied: their type has no fixed oid")
    return info.oid


def _choose(values: Any, present: NDArray) -> Any:
    return values.choose(present) if isinstance(values, Ragged) else np.asarray(values)[present]


TEXT = Text()
