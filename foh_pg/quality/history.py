"""How the quality of an index went over its versions, as foh.run remembers it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from foh_pg.runs.run_metrics import readable

# Of several runs of one version the last counts. The last evaluations, however many runs came after them.
VERSIONS = """
SELECT r.version, max(r.started_at),
       (array_agg(r.metrics ORDER BY r.id DESC) FILTER (WHERE NOT r.evaluates AND r.metrics ? 'map'))[1],
       (array_agg(r.metrics ORDER BY r.id DESC) FILTER (WHERE r.evaluates AND r.metrics ? 'index'))[1]
FROM (SELECT x.id, x.kind = 'evaluate' AS evaluates, x.started_at, x.metrics,
             coalesce(x.to_version, x.from_version) AS version,
             row_number() OVER (PARTITION BY x.kind = 'evaluate' ORDER BY x.id DESC) AS age
      FROM foh.run x JOIN foh.index i ON i.id = x.index WHERE i.name = %(name)s) r
WHERE r.age <= 200 AND r.metrics ?| ARRAY['map', 'index'] GROUP BY r.version ORDER BY r.version
"""


class Quality(NamedTuple):
    """What is known of one version."""

    version: int
    at: datetime
    # mAP on held-out rows of the model that was served, as the updater saw it.
    map: float | None
    # The figures of foh-pg evaluate; those by earlier versions of this package lack some.
    evaluated: dict[str, Any] | None

    def score(self, way: str, name: str) -> float | None:
        return None if self.evaluated is None else self.evaluated.get(way, {}).get(name)


def quality(connection: psycopg.Connection[Any], index: str) -> list[Quality]:
    """Quality by version, the oldest first."""
    found = []
    with connection.cursor(row_factory=tuple_row) as cursor:
        for version, at, learned, evaluated in cursor.execute(VERSIONS, {"name": index}):
            learned, evaluated = readable(learned or {}), readable(evaluated or {})
            # Where a model was refused, the present one goes on serving.
            seen = learned.get("map_present" if learned.get("refused") else "map")
            map_ = None if seen is None else float(seen)
            found.append(Quality(version, at, map_, evaluated if "index" in evaluated else None))
    return found
