"""What foh.run remembers of an index, and how its quality went over the versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from foh_pg.runs.run_metrics import duration, readable

RUNS = """
SELECT * FROM (
    SELECT r.id, r.kind, r.started_at, r.finished_at, coalesce(r.to_version, r.from_version) AS version,
           r.rows, r.lists, r.rows_encoded, r.stale, r.phases, r.metrics, r.error
    FROM foh.run r JOIN foh.index i ON i.id = r.index
    WHERE i.name = %(name)s AND (r.kind = ANY (%(kinds)s::text[]) OR %(kinds)s::text[] IS NULL)
    ORDER BY r.id DESC LIMIT %(limit)s) r
ORDER BY r.id
"""


@dataclass(frozen=True)
class PastRun:
    """One row of foh.run."""

    id: int
    kind: str
    started_at: datetime
    finished_at: datetime | None
    version: int
    rows: int
    lists: int
    rows_encoded: int
    stale: float | None
    phases: dict[str, float]
    metrics: dict[str, Any]
    error: str | None

    @property
    def seconds(self) -> float:
        return sum(self.phases.values())

    @property
    def held_out_map(self) -> float | None:
        """mAP on held-out rows of the model that was served after this run, as the updater saw it."""
        found = self.metrics.get("map_present" if self.metrics.get("refused") else "map")
        return None if found is None else float(found)


def read_runs(
    connection: psycopg.Connection[Any], index: str, limit: int = 200, kinds: list[str] | None = None
) -> list[PastRun]:
    """The last runs of an index, the oldest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(RUNS, {"name": index, "limit": limit, "kinds": kinds}).fetchall()
    return [PastRun(**{**row, "metrics": readable(row["metrics"])}) for row in rows]


def read_history(connection: psycopg.Connection[Any], index: str, limit: int = 200) -> list[PastRun]:
    """The last runs of an index and its last evaluations, however many runs came after those."""
    runs = read_runs(connection, index, limit)
    evaluations = read_runs(connection, index, limit, ["evaluate"])
    by_id = {run.id: run for run in [*evaluations, *runs]}
    return [by_id[number] for number in sorted(by_id)]


@dataclass(frozen=True)
class Quality:
    """What is known of one version: by an evaluation, by the updater's look at held-out rows, or both."""

    version: int
    at: datetime
    held_out_map: float | None = None
    evaluated: dict[str, Any] | None = None
    evaluated_at: datetime | None = None

    def score(self, way: str, name: str) -> float | None:
        """A figure of the evaluation; those by earlier versions of this package lack some."""
        return None if self.evaluated is None else self.evaluated.get(way, {}).get(name)

    def as_dict(self) -> dict[str, Any]:
        return {"version": self.version, "at": self.at, "map": self.held_out_map, "evaluated": self.evaluated}


def quality(runs: Sequence[PastRun]) -> list[Quality]:
    """Quality by version; of several evaluations of one version the last counts."""
    found: dict[int, Quality] = {}
    for run in runs:
        before = found.get(run.version)
        if run.kind == "evaluate" and "index" in run.metrics:
            seen = None if before is None else before.held_out_map
            found[run.version] = Quality(run.version, run.started_at, seen, run.metrics, run.started_at)
        elif run.held_out_map is not None:
            known = Quality(run.version, run.started_at) if before is None else before
            found[run.version] = replace(known, at=run.started_at, held_out_map=run.held_out_map)
    return [found[version] for version in sorted(found)]


def age(at: datetime, now: datetime) -> str:
    """How old the last point of a chart is."""
    return f"The last point is {duration((now - at).total_seconds())} old."
