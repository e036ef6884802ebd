"""Many pieces of one byte buffer at once: the gather and scatter below every column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

NDArray = np.ndarray[Any, Any]

# Longer pieces are copied one by one: an index of eight bytes for each of their bytes would cost more.
LONG = 128


def gather(buffer: NDArray, offsets: NDArray, width: int) -> NDArray:
    """The `width` bytes at each of `offsets`, as a matrix of bytes."""
    if width == 0 or len(offsets) == 0:
        return np.empty((len(offsets), width), dtype=np.uint8)
    return sliding_window_view(buffer, width)[offsets]


def gather_int4(buffer: NDArray, offsets: NDArray) -> NDArray:
    return gather(buffer, offsets, 4).view(">i4").reshape(-1).astype(np.int64)


def scatter(buffer: NDArray, offsets: NDArray, rows: NDArray) -> None:
    """Put row i of the byte matrix `rows` at ``offsets[i]``."""
    if rows.size:
        sliding_window_view(buffer, rows.shape[1], writeable=True)[offsets] = rows


def scatter_pieces(buffer: NDArray, offsets: NDArray, lengths: NDArray, pieces: NDArray) -> None:
    """Put pieces of different lengths, which follow each other in `pieces`, at their offsets."""
    starts = np.cumsum(lengths) - lengths
    if len(lengths) and len(pieces) > LONG * len(lengths):
        for offset, start, length in zip(offsets.tolist(), starts.tolist(), lengths.tolist(), strict=True):
            buffer[offset : offset + length] = pieces[start : start + length]
    else:
        buffer[np.repeat(offsets - starts, lengths) + np.arange(len(pieces))] = pieces


def as_bytes(rows: NDArray) -> NDArray:
    """The bytes of an array whose first axis is the rows, as a matrix."""
    rows = np.ascontiguousarray(rows)
    return (
        rows.view(np.uint8).reshape(len(rows), -1) if rows.size else np.empty((len(rows), 0), dtype=np.uint8)
    )
