from __future__ import annotations

from typing import Any, NamedTuple


class Match(NamedTuple):
    """A row that a search found.

    `distance` is the Hamming distance of its code; None where the table itself was searched. `score` is what
    the rows are ranked by, smaller is nearer; None among candidates that nobody ranked.
    """

    key: Any
    distance: int | None
    score: float | None
