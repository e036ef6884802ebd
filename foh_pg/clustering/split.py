"""A list that has grown long, cut into pieces by 2-means of the bits of its members."""

from __future__ import annotations

import numpy as np

from foh_pg.arrays.codes import CodeArray
from foh_pg.clustering.distance import Values
from foh_pg.clustering.kmeans import assign, cluster
from foh_pg.clustering.signs import Positions, signs

ITERATIONS = 8

# The larger of two pieces has at most this share of the members, or the list is not split.
LARGEST_PIECE = 0.98


def split_list(rng: np.random.Generator, bits: CodeArray, longest: float, pieces: int = 1 << 20) -> Positions:
    """Cut the members of a list in two, and again, until no piece is longer than `longest`.

    Parameters
    ----------
    bits : array (members, bytes)
        Geometry bits.
    pieces : int
        How many there may be at the most.

    Returns
    -------
    array (members,)
        The piece of each member; all 0 where the members are too much alike.

    Examples
    --------
    >>> bits = np.array([[0b11110000], [0b11100000], [0b00001111], [0b00000111]], dtype=np.uint8)
    >>> split_list(np.random.default_rng(0), bits, 2)
    array([0, 0, 1, 1])
    """
    given = signs(bits)
    whole = np.zeros(len(given), dtype=np.int64)
    # A piece that cannot be cut is done, however long it is.
    waiting: list[Positions] = [np.arange(len(given))]
    done: list[Positions] = []
    while waiting:
        waiting.sort(key=len)
        members = waiting.pop()
        halves = None
        if len(members) > longest and len(waiting) + len(done) + 2 <= pieces:
            halves = _halves(rng, given[members])
        if halves is None:
            done.append(members)
        else:
            waiting += [members[halves], members[~halves]]
    done.sort(key=lambda members: int(members[0]) if len(members) else 0)
    for number, members in enumerate(done):
        whole[members] = number
    return whole


def _halves(rng: np.random.Generator, rows: Values) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Which rows belong to the first of two pieces; None where they cannot be told apart."""
    nearest, _ = assign(rows, cluster(rng, rows, 2, ITERATIONS, "l2"), "l2")
    first = nearest == 0
    larger = max(int(first.sum()), int((~first).sum()))
    return None if larger > LARGEST_PIECE * len(rows) else first
