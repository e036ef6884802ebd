"""How many entries of some arrays, side by side in one row, fit a page.

PostgreSQL moves what does not fit a page to another table (TOAST), and every search would have to fetch it
from there.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

# What an array takes beside its elements: its header, and what aligns it.
ARRAY_BYTES = 24 + 8
# The longest row that a page of 8 kB holds, less its header, two ints, and what three arrays take.
ROW_BYTES = 24 + 8 + 3 * ARRAY_BYTES
PAGE_BYTES = 8160 - ROW_BYTES

IntArray = npt.NDArray[np.int64]


def bit_bytes(bits: int) -> int:
    """Bytes of one bit string in an array: two ints before it, and its end aligned.

    >>> bit_bytes(33)
    16
    """
    return 8 + 4 * -(-bits // 32)


def page_of(groups: npt.NDArray[Any], sizes: IntArray, room: int = PAGE_BYTES) -> IntArray:
    """The number of the page, from 0 on, that each entry goes to within its group.

    Entries of a group stand together. As many go to a page as fit it, whatever the length of the last one; an
    entry that is longer than a page has one alone. Taking entries away from a page never makes it two. A page
    has `room` bytes for entries.

    >>> page_of(np.array([7, 7, 7, 9]), np.array([4000, 4000, 4000, 4000]))
    array([0, 0, 1, 0])
    """
    if len(groups) == 0:
        return np.zeros(0, dtype=np.int64)
    begins = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    counts = np.diff(np.append(begins, len(groups)))
    starts = np.cumsum(sizes) - sizes
    starts -= np.repeat(starts[begins], counts)
    # Every entry begins so early that the longest one would still fit.
    begun = np.maximum(room - np.maximum.reduceat(sizes, begins) + 1, 1)
    pages = starts // np.repeat(begun, counts)
    # Numbers without gaps: an entry may be longer than a page has room for.
    new = np.append(False, pages[1:] != pages[:-1])
    new[begins] = False
    numbers = np.cumsum(new)
    return np.asarray(numbers - np.repeat(numbers[begins], counts), dtype=np.int64)


def filling_order(sizes: IntArray, room: int = PAGE_BYTES) -> IntArray:
    """An order of parts of lists in which few pages hold them all, if they are written one after the other.

    Beside a long part go the longest ones that still fit its page. `sizes`: bytes of the entries of each.

    >>> filling_order(np.array([300, 7000, 5000, 600, 2000]), room=7600)
    array([1, 0, 2, 4, 3])
    """
    order = np.argsort(sizes, kind="stable")
    lengths, left = sizes[order].tolist(), order.tolist()
    placed = []
    while left:
        free = room - lengths.pop()
        placed.append(left.pop())
        while (at := bisect_right(lengths, free - ROW_BYTES) - 1) >= 0:
            free -= lengths.pop(at) + ROW_BYTES
            placed.append(left.pop(at))
    return np.array(placed, dtype=np.int64)
