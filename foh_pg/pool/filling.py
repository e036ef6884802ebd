"""The pool of rows that are all at hand: what the first fill of an index and a benchmark need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray
from foh_pg.errors import InputError
from foh_pg.pool.centers import FROM_SPLIT, sample_centers, split_list, target_centers, too_long
from foh_pg.pool.distance import Metric, Rows
from foh_pg.pool.homes import Positions, find_homes


class Pool(NamedTuple):
    """Centers and homes.

    Attributes
    ----------
    centers : array (u,)
        Which rows are centers.
    priorities : array (u,)
        Their priorities in the sample of the stream, see `sample_centers`.
    home : array (n,)
        Position of each row's center among `centers`; every row has one, and every center has a row.
    """

    centers: Positions
    priorities: npt.NDArray[np.float64]
    home: Positions


def build(
    rng: np.random.Generator,
    codes: CodeArray,
    rows: Rows,
    *,
    bits: int,
    probes: int = 10,
    centers: int | None = None,
    longest: float = 4.0,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> Pool:
    """Choose centers, give every row its home, split long lists and remove empty ones.

    Parameters
    ----------
    probes : int
        How many lists a query will read.
    centers : int, optional
        How many centers; without it about sqrt(probes * rows).
    longest : float
        A list that is longer than this many times the mean is split.

    Examples
    --------
    >>> from foh_pg.codes import pack
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 8))
    >>> pool = build(rng, pack(rows > 0), rows, bits=8, probes=4)
    >>> np.bincount(pool.home, minlength=len(pool.centers)).min() >= 1
    np.True_
    """
    if len(codes) == 0:
        raise InputError("a pool needs at least one row")
    target = target_centers(len(codes), probes, centers)
    _, chosen, priorities = sample_centers(rng, np.zeros(0), len(codes), len(codes), target)

    def homes(among: Positions) -> Positions:
        found = find_homes(codes, rows, codes[among], rows[among], bits=bits, metric=metric, blend=blend)
        return found[:, 0]

    home = homes(chosen)
    limit = longest * len(codes) / len(chosen)
    added = []
    for long in too_long(np.bincount(home, minlength=len(chosen)), limit):
        members, center = np.flatnonzero(home == long), chosen[long : long + 1]
        split, _ = split_list(
            rng,
            codes[members],
            rows[members],
            codes[center],
            rows[center],
            pieces=int(np.ceil(2 * len(members) / limit)),
            bits=bits,
            metric=metric,
            blend=blend,
        )
        added.append(members[split])
    if added:
        chosen = np.concatenate([chosen, *added])
        priorities = np.append(priorities, np.full(len(chosen) - len(priorities), FROM_SPLIT))
        home = homes(chosen)
    return _without_empty(Pool(chosen, priorities, home))


def _without_empty(pool: Pool) -> Pool:
    filled = np.bincount(pool.home, minlength=len(pool.centers)) > 0
    place = np.cumsum(filled) - 1
    return Pool(pool.centers[filled], pool.priorities[filled], place[pool.home])
