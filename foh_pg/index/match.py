from __future__ import annotations

from typing import Any, NamedTuple


class Match(NamedTuple):
    """A row that a search found.

    `distance` is the number of geometry bits in which the row differs from the query; None where the row was
    read from the table without a look at its bits. `score` is what the rows are ranked by, smaller is nearer:
    the exact distance, or its estimate from the bits where there is no shortlist, plus what the labels add.
    It is None among candidates that nobody ranked.
    """

    key: Any
    distance: int | None
    score: float | None
