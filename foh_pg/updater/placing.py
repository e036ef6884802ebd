"""What lists hold of rows: the one place where that is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray
from foh_pg.model.model import Model
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, positions
from foh_pg.tables.source import Rows, read_by_key


def held_of(model: Model, rows: Rows) -> dict[str, npt.NDArray[Any]]:
    """The columns of IndexRow.held, for rows as they are in the table."""
    return {
        "geometry": model.geometry_bits(rows.vectors),
        "marks": model.marks(rows.vectors, rows.labels),
        **rows.included,
    }


def marks_now(
    session: Session, index: IndexRow, model: Model, keys: KeyArray
) -> tuple[CodeArray, npt.NDArray[np.bool_]]:
    """The marks of the rows of some keys, and which of the keys have a row: only these have marks."""
    with session.snapshot():
        rows = read_by_key(session, index, np.unique(keys))
    at = positions(keys, rows.keys)
    return model.marks(rows.vectors, rows.labels)[at[at >= 0]], at >= 0
