"""Which lists a new version of the hash functions really changes, judged by a few of their members."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, hamming_rows
from foh_pg.clustering.signs import Positions


class Affected(NamedTuple):
    """Lists to encode again."""

    # Positions of the lists whose sample has more than `max_stale` of its bits flipped, stalest first.
    lists: Positions
    # Share of flipped bits in the sample of every list; 0 where a list has no sample.
    stale: npt.NDArray[np.float32]


def find_affected(
    lists: Positions,
    old_codes: CodeArray,
    new_codes: CodeArray,
    *,
    bits: int,
    total: int,
    max_stale: float = 0.01,
) -> Affected:
    """Compare the stored codes of sampled members with what the new hash functions give them.

    Parameters
    ----------
    lists : array (samples,)
        The list of each sampled member.
    old_codes : array (samples, bytes)
        Codes as stored when the list was last encoded, so that staleness adds up over versions.
    new_codes : array (samples, bytes)
        Codes of the same members by the new hash functions.
    total : int
        Number of lists.
    max_stale : float
        Share of flipped bits that a list may have.

    Examples
    --------
    >>> from foh_pg.arrays.codes import pack
    >>> old, new = pack([[0, 0, 0, 0], [1, 1, 1, 1]]), pack([[0, 0, 0, 0], [1, 1, 1, 0]])
    >>> find_affected(np.array([0, 1]), old, new, bits=4, total=2)
    Affected(lists=array([1]), stale=array([0.  , 0.25], dtype=float32))
    """
    flips = np.bincount(lists, weights=hamming_rows(old_codes, new_codes), minlength=total)
    seen = np.bincount(lists, minlength=total) * bits
    stale = flips / np.maximum(seen, 1)
    stalest = np.argsort(-stale, kind="stable")
    return Affected(stalest[stale[stalest] > max_stale].astype(np.int64), stale.astype(np.float32))
