"""What foh.run remembers of an index, and how its quality went over the versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from foh_pg.runs.run_metrics import readable

RUNS = """
SELECT * FROM (
    SELECT r.id, r.kind, r.started_at, r.finished_at, coalesce(r.to_version, r.from_version) AS version,
           r.rows, r.lists, r.rows_encoded, r.stale, r.phases, r.metrics, r.error
    FROM foh.run r JOIN foh.index i ON i.id = r.index
    WHERE i.name = %(name)s AND (r.kind = ANY (%(kinds)s::text[]) OR %(kinds)s::text[] IS NULL)
    ORDER BY r.id DESC LIMIT %(limit)s) r
ORDER BY r.id
"""

BLOCKS = "▁▂▃▄▅▆▇█"


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
    return [past_run(row) for row in rows]


def past_run(row: dict[str, Any]) -> PastRun:
    return PastRun(**{**row, "metrics": readable(row["metrics"])})


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


def quality(runs: list[PastRun]) -> list[Quality]:
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


def scores(points: Iterable[Quality], way: str, name: str) -> list[tuple[float, float]]:
    """A figure of each evaluation that has it, by version."""
    known = ((float(point.version), point.score(way, name)) for point in points)
    return [(version, value) for version, value in known if value is not None]


def held_out_maps(points: Iterable[Quality]) -> list[tuple[float, float]]:
    """mAP on held-out rows by version, as far as the updater saw it."""
    return [(float(p.version), p.held_out_map) for p in points if p.held_out_map is not None]


def duration(seconds: float) -> str:
    """A length of time as people say it.

    Examples
    --------
    >>> [duration(x) for x in (-1, 4.6, 119, 7300, 400_000)]
    ['0 s', '5 s', '119 s', '122 min', '111 h']
    """
    seconds = max(0.0, seconds)
    for unit, size, most in (("s", 1, 120), ("min", 60, 180), ("h", 3600, 120)):
        if seconds / size < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def age(at: Iterable[datetime], now: datetime) -> str:
    """How long ago the last of some points of a chart was measured.

    Examples
    --------
    >>> day = datetime(2026, 1, 2)
    >>> age([day.replace(hour=3), day.replace(hour=1)], day.replace(hour=7))
    'The last point is 4 h old.'
    """
    return f"The last point is {duration((now - max(at)).total_seconds())} old."


def sparkline(values: list[float]) -> str:
    """A line of blocks from the least to the greatest value.

    Examples
    --------
    >>> sparkline([0.1, 0.5, 0.9])
    '▁▅█'
    >>> sparkline([0.3, 0.3])
    '▄▄'
    >>> sparkline([])
    ''
    """
    if not values:
        return ""
    low, high = min(values), max(values)
    if high == low:
        return BLOCKS[3] * len(values)
    return "".join(BLOCKS[min(7, int((value - low) / (high - low) * 8))] for value in values)
