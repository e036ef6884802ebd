"""How the quality of an index went over its versions, as foh.run remembers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row

from foh_pg.runs.run_metrics import readable

# The last evaluations, however many runs came after them.
RUNS = """
SELECT r.kind, r.started_at, r.version, r.metrics
FROM (SELECT x.id, x.kind, x.started_at, coalesce(x.to_version, x.from_version) AS version, x.metrics,
             row_number() OVER (PARTITION BY x.kind = 'evaluate' ORDER BY x.id DESC) AS age
      FROM foh.run x JOIN foh.index i ON i.id = x.index WHERE i.name = %(name)s) r
WHERE r.age <= 200 ORDER BY r.id
"""


class PastRun(NamedTuple):
    """What a row of foh.run says of quality."""

    kind: str
    started_at: datetime
    version: int
    metrics: dict[str, Any]

    @property
    def held_out_map(self) -> float | None:
        """mAP on held-out rows of the model that was served after this run, as the updater saw it."""
        found = self.metrics.get("map_present" if self.metrics.get("refused") else "map")
        return None if found is None else float(found)


def read_runs(connection: psycopg.Connection[Any], index: str) -> list[PastRun]:
    """The last runs of an index, the oldest first."""
    with connection.cursor(row_factory=class_row(PastRun)) as cursor:
        rows = cursor.execute(RUNS, {"name": index}).fetchall()
    return [run._replace(metrics=readable(run.metrics)) for run in rows]


@dataclass(frozen=True)
class Quality:
    """What is known of one version: by an evaluation, by the updater's look at held-out rows, or both."""

    version: int
    at: datetime
    held_out_map: float | None = None
    evaluated: dict[str, Any] | None = None

    def score(self, way: str, name: str) -> float | None:
        """A figure of the evaluation; those by earlier versions of this package lack some."""
        return None if self.evaluated is None else self.evaluated.get(way, {}).get(name)

    def as_dict(self) -> dict[str, Any]:
        return {"version": self.version, "at": self.at, "map": self.held_out_map, "evaluated": self.evaluated}


def quality(runs: Iterable[PastRun]) -> list[Quality]:
    """Quality by version; of several evaluations of one version the last counts."""
    found: dict[int, Quality] = {}
    for run in runs:
        known = replace(found.get(run.version, Quality(run.version, run.started_at)), at=run.started_at)
        if run.kind == "evaluate" and "index" in run.metrics:
            found[run.version] = replace(known, evaluated=run.metrics)
        elif run.held_out_map is not None:
            found[run.version] = replace(known, held_out_map=run.held_out_map)
    return [found[version] for version in sorted(found)]
