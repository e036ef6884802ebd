"""Packed binary codes: packing, Hamming distances and the nearest codes.

A code of k bits is a row of ceil(k / 8) bytes in the order of `numpy.packbits`: bit 0 is the highest bit of
the first byte, unused bits at the end are zero. These are the bytes of PostgreSQL's `bit(k)` in binary
format, where the first character of the bit string is bit 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

CodeArray = npt.NDArray[np.uint8]

# Distances are made in blocks of at most this many pairs, so that memory stays flat.
BLOCK_PAIRS = 1 << 22
CACHED_PAIRS = 1 << 16


def width(bits: int) -> int:
    """Bytes that a code of `bits` bits takes."""
    return -(-bits // 8)


def pack(bits: npt.ArrayLike) -> CodeArray:
    """Pack an (n, k) array of truth values into codes.

    >>> pack([[True, False, False, False, False, False, False, False, True]])
    array([[128, 128]], dtype=uint8)
    """
    return np.packbits(np.asarray(bits) != 0, axis=1)


def unpack(codes: CodeArray, bits: int) -> npt.NDArray[np.bool_]:
    """Unpack codes into an (n, bits) array of truth values.

    >>> unpack(pack([[1, 0, 1]]), 3)
    array([[ True, False,  True]])
    """
    return np.unpackbits(codes, axis=1, count=bits).astype(bool)


def hamming(a: CodeArray, b: CodeArray) -> npt.NDArray[np.uint16]:
    """Hamming distances between every code of `a` and every code of `b`.

    >>> hamming(pack([[1, 0, 1]]), pack([[1, 0, 1], [0, 1, 0]]))
    array([[0, 3]], dtype=uint16)
    """
    distances = np.empty((len(a), len(b)), dtype=np.uint16)
    for start, block in hamming_blocks(a, b):
        distances[start : start + len(block)] = block
    return distances


def hamming_blocks(
    a: CodeArray, b: CodeArray, pairs: int = BLOCK_PAIRS
) -> Iterator[tuple[int, npt.NDArray[np.uint16]]]:
    """Yield `(start, distances)` for consecutive blocks of rows of `a` against all of `b`."""
    left_words, right_words = _words(a), _words(b)
    step = max(1, pairs // max(1, len(b)))
    for start in range(0, len(a), step):
        yield start, _distances(left_words[:, start : start + step], right_words)


def hamming_rows(a: CodeArray, b: CodeArray) -> npt.NDArray[np.uint16]:
    """Hamming distance between each code of `a` and the code of `b` in the same row."""
    return np.asarray(np.bitwise_count(_words(a) ^ _words(b)).sum(axis=0), dtype=np.uint16)


def hamming_pairs(a: CodeArray, b: CodeArray, among: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Hamming distance between each code of `a` and some codes of `b`, whose positions are `among` (n, some).

    >>> hamming_pairs(pack([[1, 0, 1]]), pack([[1, 0, 1], [0, 1, 0]]), np.array([[1, 0]]))
    array([[3, 0]], dtype=uint16)
    """
    return hamming_at(a, b, np.arange(len(a))[:, None], among)


def hamming_at(
    a: CodeArray, b: CodeArray, left: npt.NDArray[Any], right: npt.NDArray[Any]
) -> npt.NDArray[np.uint16]:
    """Hamming distances between codes of `a` at positions `left` and codes of `b` at positions `right`.

    >>> hamming_at(pack([[1, 0, 1]]), pack([[1, 0, 1], [0, 1, 0]]), np.array([0, 0, 0]), np.array([0, 1, 1]))
    array([0, 3, 3], dtype=uint16)
    """
    total = np.zeros(np.broadcast_shapes(left.shape, right.shape), dtype=np.uint16)
    for mine, others in zip(_words(a), _words(b), strict=True):
        total += np.bitwise_count(mine[left] ^ others[right])
    return total


def nearest(
    queries: CodeArray, base: CodeArray, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
    """Find the k nearest codes of each query, and their distances; equal ones keep the order of the base.

    >>> base = pack([[0, 1, 1], [1, 1, 1], [1, 1, 0]])
    >>> nearest(pack([[1, 1, 1]]), base, 3)
    (array([[1, 0, 2]]), array([[0, 1, 1]], dtype=uint16))
    """
    k = min(k, len(base))
    rows = np.empty((len(queries), k), dtype=np.int64)
    distances = np.empty((len(queries), k), dtype=np.uint16)
    for start, block in hamming_blocks(queries, base):
        stop = start + len(block)
        rows[start:stop] = smallest(block, k)
        distances[start:stop] = np.take_along_axis(block, rows[start:stop], axis=1)
    return rows, distances


def smallest(distances: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    """Columns of the k smallest integers of each row, ascending, ties in column order."""
    columns = distances.shape[1]
    if columns == 0 or k == 0:
        return np.empty((len(distances), 0), dtype=np.int64)
    # Distance and column in one integer: no two are equal, so any selection is stable.
    keys = distances.astype(np.int64) * columns + np.arange(columns)
    if k < columns:
        keys = np.partition(keys, k - 1, axis=1)[:, :k]
    keys.sort(axis=1)
    return np.asarray(keys[:, :k] % columns, dtype=np.int64)


def _words(codes: CodeArray) -> npt.NDArray[np.uint64]:
    """View codes as (words, n) of 64 bits, zero padded: one contiguous array per word."""
    count = -(-codes.shape[1] // 8)
    padded = np.zeros((len(codes), count * 8), dtype=np.uint8)
    padded[:, : codes.shape[1]] = codes
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _distances(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    total = np.zeros((a.shape[1], b.shape[1]), dtype=np.uint16)
    # A few rows of the result at a time, which stay in the cache while word after word is counted.
    step = max(1, CACHED_PAIRS // max(1, b.shape[1]))
    for start in range(0, len(total), step):
        part = total[start : start + step]
        for left, right in zip(a[:, start : start + step], b, strict=True):
            part += np.bitwise_count(left[:, None] ^ right[None, :])
    return total
