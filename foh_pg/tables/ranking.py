"""How a search ranks what it finds: the weights of code and votes beside the geometry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Ranking:
    """Weights of a model, stored with it and rolled back with it."""

    # code, votes: weights of the learned code, and of the votes of the nearest rows.
    code: float = 1.6
    votes: float = 0.4
    # probes, shortlist: chosen on held-out rows; None leaves the options of the index.
    probes: int | None = None
    shortlist: int | None = None
    # How many rows there were when the choice was made; 0 where none was made yet.
    rows: int = 0

    @property
    def by_geometry_alone(self) -> bool:
        return self.code == self.votes == 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Ranking:
        return cls(**given)


def ranking_text(ranking: Mapping[str, Any]) -> str:
    """What column `ranking` of foh.index_stat says, for reading.

    Examples
    --------
    >>> ranking = {"code": 0.5, "votes": 0.4, "probes": None, "shortlist": 50}
    >>> ranking_text(ranking | {"by_geometry_alone": False})
    'geometry, code 0.5, votes 0.4; default probes, shortlist 50'
    >>> ranking_text(ranking | {"by_geometry_alone": True})
    'geometry alone; default probes, shortlist 50'
    """
    weights = f"geometry, code {ranking['code']}, votes {ranking['votes']}"
    budget = (
        f"default {name}" if ranking[name] is None else f"{name} {ranking[name]}"
        for name in ("probes", "shortlist")
    )
    return f"{'geometry alone' if ranking['by_geometry_alone'] else weights}; {', '.join(budget)}"
