"""Whether indexes are kept up to date, as foh.health says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

from foh_pg.errors import IndexNotFound

# Seconds that an entry may wait in the stream.
MAX_LAG = 600.0

HEALTH = """
SELECT h.* FROM foh.health(pg_catalog.make_interval(secs => %(max_lag)s)) h
WHERE h.name = ANY (%(names)s::text[]) OR %(names)s::text[] IS NULL ORDER BY h.name
"""


def read_health(
    connection: psycopg.Connection[Any], names: Sequence[str] = (), max_lag: float = MAX_LAG
) -> list[dict[str, Any]]:
    """The rows of foh.health; of these indexes only, where names are given, which must be there."""
    with connection.cursor(row_factory=dict_row) as cursor:
        asked = {"max_lag": max_lag, "names": list(names) or None}
        rows = cursor.execute(HEALTH, asked).fetchall()
    missing = set(names) - {row["name"] for row in rows}
    if missing:
        raise IndexNotFound.named(min(missing))
    return rows
