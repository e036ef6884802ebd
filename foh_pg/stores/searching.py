"""How a store is searched: the arguments that it passes on to `foh_search`."""

from __future__ import annotations

from typing import TypedDict


class Searching(TypedDict, total=False):
    labels: float | None
    probes: int | None
    shortlist: int | None
    recall: float | None
    max_distance: float | None


SEARCHING = frozenset(Searching.__annotations__)
