"""What lists hold of rows: the one place where that is computed."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from foh_pg.model.model import Model
from foh_pg.tables.source import Rows


def held_of(model: Model, rows: Rows) -> dict[str, npt.NDArray[Any]]:
    """The columns of IndexRow.held, for rows as they are in the table."""
    return {
        "geometry": model.geometry_bits(rows.vectors),
        "marks": model.marks(rows.vectors, rows.labels),
        **rows.included,
    }
