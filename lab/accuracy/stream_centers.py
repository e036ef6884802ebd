"""Centers of the paper's pool as the stream grows: a uniform sample of all rows so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError

Rows = npt.NDArray[np.int64]


class CenterChange(NamedTuple):
    """What a sample of the stream asks for."""

    # Rows of present centers that are no longer part of the sample: their rows need a new home.
    dropped: Rows
    # Positions of the new rows that become centers.
    chosen: Rows
    # Of the chosen, to be kept with them.
    priorities: npt.NDArray[np.float64]


def sample_centers(
    rng: np.random.Generator, priorities: npt.NDArray[np.float64], new_rows: int, rows_seen: int, target: int
) -> CenterChange:
    """Keep the centers a uniform sample of all rows of the stream, over any number of calls.

    Every row draws a priority from [0, 1) once and is a center while that is below `target / rows_seen`. The
    bound falls with every batch, so a row that was turned away never has to come back, and what is left is at
    any time a uniform sample of about `target` rows.

    `priorities`: of the present centers. `new_rows`: rows in this batch. `rows_seen`: rows of the stream so
    far, with this batch. `target`: how many centers there should be.
    """
    if rows_seen < new_rows:
        raise InputError(f"{rows_seen} rows of the stream cannot contain a batch of {new_rows}")
    bound = target / max(rows_seen, 1)
    drawn = rng.random(new_rows)
    dropped = np.flatnonzero(priorities >= bound)
    chosen = np.flatnonzero(drawn < bound)
    if len(chosen) == 0 and len(dropped) == len(priorities):
        # At least one center remains: the one with the smallest priority.
        if len(priorities) and (new_rows == 0 or priorities.min() <= drawn.min()):
            dropped = np.delete(dropped, priorities[dropped].argmin())
        elif new_rows:
            chosen = np.array([drawn.argmin()])
    return CenterChange(dropped.astype(np.int64), chosen.astype(np.int64), drawn[chosen])
