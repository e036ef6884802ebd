"""Centers that follow the data: a sample of the whole stream, split where lists grow long."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray
from foh_pg.errors import InputError
from foh_pg.pool.distance import Metric, Rows, blend_blocks
from foh_pg.pool.homes import Positions

# The priority of a center that came from a split: no sample turns it out, only an empty list does.
FROM_SPLIT = -1.0


def target_centers(rows: int, probes: int, fixed: int | None = None) -> int:
    """How many centers to have: about sqrt(probes * rows), or as many as the user says.

    A query then reads about as many centers as list entries.

    Examples
    --------
    >>> target_centers(60_000, probes=10)
    775
    """
    if fixed is not None:
        if fixed < 1:
            raise InputError(f"there must be at least 1 center, not {fixed}")
        return fixed
    return max(1, min(rows, round(math.sqrt(probes * rows))))


class CenterChange(NamedTuple):
    """What a sample of the stream asks for.

    Attributes
    ----------
    dropped : array
        Positions of present centers that are no longer part of the sample: their rows need a new home.
    chosen : array
        Positions of new rows that become centers.
    priorities : array
        Of the chosen, to be kept with them.
    """

    dropped: Positions
    chosen: Positions
    priorities: npt.NDArray[np.float64]


def sample_centers(
    rng: np.random.Generator,
    priorities: npt.NDArray[np.float64],
    new_rows: int,
    rows_seen: int,
    target: int,
) -> CenterChange:
    """Keep the centers a uniform sample of all rows of the stream, over any number of calls.

    Every row draws a priority from [0, 1) once and is a center while that is below `target / rows_seen`. The
    bound falls with every batch, whether `target` is fixed or grows like a square root, so a row that was
    turned away never has to come back, and what is left is at any time a uniform sample of about `target`
    rows.

    Parameters
    ----------
    priorities : array
        Of the present centers.
    new_rows : int
        Rows in this batch.
    rows_seen : int
        Rows of the stream so far, with this batch.
    target : int
        How many centers there should be.
    """
    if rows_seen < new_rows:
        raise InputError(f"{rows_seen} rows of the stream cannot contain a batch of {new_rows}")
    bound = target / max(rows_seen, 1)
    drawn = rng.random(new_rows)
    dropped = np.flatnonzero(priorities >= bound)
    chosen = np.flatnonzero(drawn < bound)
    if len(chosen) == 0 and len(dropped) == len(priorities):
        # Never no center at all: the one that would have stayed longest does.
        if len(priorities) and (new_rows == 0 or priorities.min() <= drawn.min()):
            dropped = np.delete(dropped, priorities[dropped].argmin())
        elif new_rows:
            chosen = np.array([drawn.argmin()])
    return CenterChange(dropped.astype(np.int64), chosen.astype(np.int64), drawn[chosen])


def too_long(lengths: npt.NDArray[np.int64], limit: float) -> Positions:
    """Positions of the lists that are longer than `limit`."""
    return np.flatnonzero(lengths > limit).astype(np.int64)


def split_list(
    rng: np.random.Generator,
    codes: CodeArray,
    rows: Rows,
    center_code: CodeArray,
    center_row: Rows,
    *,
    pieces: int,
    bits: int,
    metric: Metric = "cosine",
    blend: float = 1.0,
) -> tuple[Positions, Positions]:
    """Split one long list: choose members as further centers, far from each other, and share out the members.

    Parameters
    ----------
    codes, rows : arrays
        The members of the list.
    center_code, center_row : arrays (1, bytes) and (1, d)
        Its center, which stays.
    pieces : int
        How many lists to make of it, the present one included. Fewer come out where members are all alike.

    Returns
    -------
    chosen : array
        Members that become centers.
    piece : array (members,)
        0 where a member stays with the present center, i where it moves to the center `chosen[i - 1]`.
    """
    options = {"bits": bits, "metric": metric, "blend": blend}
    best = _to_one(codes, rows, center_code, center_row, **options)  # type: ignore[arg-type]
    chosen: list[int] = []
    piece = np.zeros(len(codes), dtype=np.int64)
    # Shifted to begin at zero, as inner products do not: a member as near as the nearest is never drawn.
    reach = best - best.min() if len(best) else best
    while len(chosen) < pieces - 1 and reach.max(initial=0) > 1e-6:
        member = int(rng.choice(len(codes), p=reach / reach.sum()))
        chosen.append(member)
        distance = _to_one(codes, rows, codes[member : member + 1], rows[member : member + 1], **options)  # type: ignore[arg-type]
        nearer = distance < best
        # A center is a member of its own list, also where another one is nearer by inner product.
        nearer[member] = True
        piece[nearer] = len(chosen)
        best = np.where(nearer, distance, best)
        reach = np.minimum(reach, np.maximum(distance - distance[member], 0))
        reach[member] = 0
    return np.array(chosen, dtype=np.int64), piece


def _to_one(
    codes: CodeArray, rows: Rows, code: CodeArray, row: Rows, *, bits: int, metric: Metric, blend: float
) -> npt.NDArray[np.float64]:
    """Distances of all rows to one."""
    blocks = blend_blocks(codes, rows, code, row, bits=bits, metric=metric, blend=blend)
    parts = [block[:, 0].astype(np.float64) for _, block in blocks]
    return np.concatenate(parts) if parts else np.zeros(0)
