"""A list that has grown long, cut into pieces by 2-means of its members."""

from __future__ import annotations

import numpy as np

from foh_pg.clustering.distance import Metric, Rows, Values, check_metric, check_rows, unit
from foh_pg.clustering.homes import Positions
from foh_pg.clustering.kmeans import assign, cluster

ITERATIONS = 8

# The larger of two pieces has at most this share of the members, or the list is not split.
LARGEST_PIECE = 0.98


def split_list(
    rng: np.random.Generator, rows: Rows, longest: float, metric: Metric = "cosine", pieces: int = 1 << 20
) -> tuple[Values, Positions]:
    """Cut the members of a list in two, and again, until no piece is longer than `longest`.

    Parameters
    ----------
    pieces : int
        How many there may be at the most.

    Returns
    -------
    centers : array (pieces, d)
        The mean of each piece; one center where the members are too much alike to be told apart.
    piece : array (members,)
        The piece of each member.

    Examples
    --------
    >>> rows = np.array([[0, 1], [0, 2], [5, 0], [6, 0.1]])
    >>> split_list(np.random.default_rng(0), rows, 2)[1] * 2 - 1
    array([-1, -1,  1,  1])
    """
    check_metric(metric)
    given = check_rows(rows)
    if metric == "cosine":
        given = unit(given)
    whole = np.zeros(len(given), dtype=np.int64)
    # A piece that cannot be cut is done, however long it is.
    waiting: list[Positions] = [np.arange(len(given))]
    done: list[Positions] = []
    while waiting:
        waiting.sort(key=len)
        members = waiting.pop()
        halves = None
        if len(members) > longest and len(waiting) + len(done) + 2 <= pieces:
            halves = _halves(rng, given[members], metric)
        if halves is None:
            done.append(members)
        else:
            waiting += [members[halves], members[~halves]]
    done.sort(key=lambda members: int(members[0]) if len(members) else 0)
    for number, members in enumerate(done):
        whole[members] = number
    means = np.stack([given[members].mean(axis=0, dtype=np.float64) for members in done])
    centers = means.astype(np.float32)
    return (unit(centers) if metric == "cosine" else centers), whole


def _halves(
    rng: np.random.Generator, rows: Values, metric: Metric
) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Which rows belong to the first of two pieces; None where they cannot be told apart."""
    nearest, _ = assign(rows, cluster(rng, rows, 2, ITERATIONS, metric), metric)
    first = nearest == 0
    larger = max(int(first.sum()), int((~first).sum()))
    return None if larger > LARGEST_PIECE * len(rows) else first
