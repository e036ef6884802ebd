"""One look at the streams: what waits in each, and how its index is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row

from foh_pg.errors import SessionError
from foh_pg.runs.run_metrics import readable
from foh_pg.runs.session import STANDBY
from foh_pg.watcher.counters import Counters

POLL = """/*NO LOAD BALANCE*/
SELECT pg_catalog.pg_is_in_recovery() AS standby, i.name, i.status, i.version, s.rows, s.stale,
       s.stream AS rows_waiting,
       coalesce(extract(epoch FROM pg_catalog.clock_timestamp() - s.waiting_since), 0)::float8 AS lag,
       foh._leaves(i) IS DISTINCT FROM u.partitions AS moved,
       s.deferred, s.problem, coalesce(r.failed, false) AS failed,
       coalesce(e.version, 0) AS evaluated_version,
       coalesce(extract(epoch FROM e.finished_at), 0)::float8 AS evaluated_at, e.metrics AS evaluated
FROM foh.index i JOIN foh.updating u ON u.index = i.id CROSS JOIN LATERAL foh._figures(i) s
LEFT JOIN LATERAL (
    SELECT x.error IS NOT NULL AS failed FROM foh.run x
    WHERE x.index = i.id AND x.kind <> 'evaluate' AND x.finished_at IS NOT NULL
    ORDER BY x.id DESC LIMIT 1) r ON true
LEFT JOIN LATERAL (
    SELECT coalesce(x.to_version, x.from_version) AS version, x.finished_at, x.metrics FROM foh.run x
    WHERE x.index = i.id AND x.kind = 'evaluate' AND x.finished_at IS NOT NULL AND x.error IS NULL
    ORDER BY x.id DESC LIMIT 1) e ON true
WHERE i.name = ANY (%(names)s::text[]) OR %(names)s::text[] IS NULL ORDER BY i.name
"""


class Stream(NamedTuple):
    """The stream of one index, and the last run and the last evaluation of that index."""

    standby: bool
    name: str
    status: str
    version: int
    # rows, stale, rows_waiting, deferred: None where problem says why they cannot be read.
    rows: int
    stale: float
    rows_waiting: int
    lag: float
    moved: bool
    deferred: int
    problem: str | None
    failed: bool
    # evaluated_version, evaluated_at: 0 where the index was never evaluated.
    evaluated_version: int
    evaluated_at: float
    evaluated: dict[str, Any] | None

    @property
    def waits(self) -> bool:
        """Whether an update has something to do: entries wait, or partitions came, went or were emptied."""
        return self.problem is None and (self.rows_waiting > 0 or self.moved)

    def show(self, counters: Counters) -> None:
        """Bring the gauges of the index up to date."""
        gauges = {
            "foh_last_run_failed": self.failed,
            "foh_index_ready": self.status == "ready" and self.problem is None,
            "foh_index_version": self.version,
            "foh_index_rows": self.rows,
            "foh_stale_bits_ratio": self.stale,
            "foh_stream_rows": self.rows_waiting,
            "foh_stream_lag_seconds": self.lag,
            "foh_deferred_rows": self.deferred,
        }
        for name, value in gauges.items():
            if value is not None:
                counters.set(name, float(value), index=self.name)
        if isinstance(self.evaluated, dict):
            found = readable(self.evaluated)
            counters.show(self.name, self.evaluated_version, self.evaluated_at, found)


def poll(connection: psycopg.Connection[Any], names: Sequence[str]) -> list[Stream]:
    """The streams of these indexes, of all where no name is given; an error on a standby."""
    with connection.cursor(row_factory=class_row(Stream)) as cursor:
        found = list(cursor.execute(POLL, {"names": list(names) or None}))
    if any(stream.standby for stream in found):
        raise SessionError(STANDBY)
    return found
