"""How a search ranks what it finds, how much it reads for that, and what recall that has reached."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from foh_pg.schema import files

# PostgreSQL reads these numbers in the same file.
CONSTANTS: dict[str, Any] = json.loads(
    files.sql("shared/search.sql")
    .partition("FUNCTION foh._ranking()")[2]
    .partition("SELECT '")[2]
    .partition("'::jsonb")[0]
)
LOOKED = int(CONSTANTS["looked"])
LOOKED_TIMES = int(CONSTANTS["looked_times"])
VOTERS = int(CONSTANTS["voters"])
PROBES = int(CONSTANTS["probes_default"])
SHORTLIST = int(CONSTANTS["shortlist_default"])
RECALL = float(CONSTANTS["recall_default"])
LABEL_VOTERS = int(CONSTANTS["label_voters"])
LABEL_VOTERS_TIMES = int(CONSTANTS["label_voters_times"])
LABEL_RANK = int(CONSTANTS["label_rank"])
LABEL_DOUBT = float(CONSTANTS["label_doubt"])

# With c times as many centers the nearest rows lie in about c ** GROWTH times as many lists. Measured on
# images, package descriptions and commit messages: .33, .12 and .46.
GROWTH = 0.35


class Reached(NamedTuple):
    """The recall of the ten nearest rows that held-out rows found with so many lists and rows read."""

    recall: float
    probes: int
    shortlist: int


@dataclass(frozen=True)
class Ranking:
    """What a model knows of ranking: stored with it and rolled back with it."""

    # How much the learned code counts beside the bits in the choice of the rows that vote; and by how many
    # times its distance a row is put back that is of another kind than the query, by those votes.
    code: float = float(CONSTANTS["weight_code_default"])
    votes: float = float(CONSTANTS["weight_votes_default"])
    # Chosen on held-out rows; None leaves the options of the index, and the defaults.
    probes: int | None = None
    shortlist: int | None = None
    # The same for a search in which labels do not count.
    nearest_probes: int | None = None
    nearest_shortlist: int | None = None
    # The lowest recall first, and so the cheapest.
    reach: tuple[Reached, ...] = ()
    # How many centers and rows there were when the choice was made; 0 where none was made yet.
    centers: int = 0
    rows: int = 0
    # What the chance of a suggested label is computed from: see foh_pg/updater/chances.py.
    chances: tuple[float, float, float] | None = None

    @property
    def by_geometry_alone(self) -> bool:
        return self.votes == 0

    def for_centers(self, centers: int) -> Ranking:
        """The same for an index with another number of centers than the one that the choice was made on."""
        if not self.centers or not centers:
            return self

        def grown(probes: int | None) -> int | None:
            if probes is None:
                return None
            times = float((centers / self.centers) ** GROWTH)
            return min(centers, max(1, round(probes * times)))

        return replace(
            self,
            probes=grown(self.probes),
            nearest_probes=grown(self.nearest_probes),
            reach=tuple(step._replace(probes=grown(step.probes) or 1) for step in self.reach),
            centers=centers,
        )

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Ranking:
        chances = given.get("chances")
        reach = tuple(Reached(*step) for step in given.get("reach", ()))
        return cls(**{**given, "reach": reach, "chances": None if chances is None else tuple(chances)})


def ranking_text(ranking: Mapping[str, Any]) -> str:
    """What column `ranking` of foh.index_stat says, for reading.

    >>> ranking = {"code": 0.2, "votes": 1.5, "probes": None, "shortlist": 50}
    >>> ranking_text(ranking | {"by_geometry_alone": False})
    'geometry, votes 1.5, code 0.2; default probes, shortlist 50'
    >>> ranking_text(ranking | {"by_geometry_alone": True})
    'geometry alone; default probes, shortlist 50'
    """
    weights = f"geometry, votes {ranking['votes']}, code {ranking['code']}"
    budget = (
        f"default {name}" if ranking[name] is None else f"{name} {ranking[name]}"
        for name in ("probes", "shortlist")
    )
    return f"{'geometry alone' if ranking['by_geometry_alone'] else weights}; {', '.join(budget)}"
