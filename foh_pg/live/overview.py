"""What the first page shows, read from the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import psycopg
from psycopg.rows import dict_row

from foh_pg.errors import one_line
from foh_pg.quality.health import read_health
from foh_pg.quality.history import PastRun, Quality, past_run, quality, read_history

STAT = """
SELECT s.*, i.labels IS NOT NULL AS labelled FROM foh.index_stat s JOIN foh.index i ON i.name = s.name
WHERE s.name = ANY (%(names)s::text[]) OR %(names)s::text[] IS NULL ORDER BY s.name
"""
RUNS = """
SELECT i.name AS index, u.pid IS NOT NULL AND r.finished_at IS NULL AND r.id = (
           SELECT pg_catalog.max(x.id) FROM foh.run x WHERE x.index = r.index) AS under_way,
       r.id, r.kind, r.started_at, r.finished_at, coalesce(r.to_version, r.from_version) AS version,
       r.rows, r.lists, r.rows_encoded, r.stale, r.phases, r.metrics, r.error
FROM foh.run r JOIN foh.index i ON i.id = r.index
CROSS JOIN LATERAL foh._holder(i.id) u (pid)
WHERE i.name = ANY (%(names)s::text[]) OR %(names)s::text[] IS NULL
ORDER BY r.id DESC LIMIT %(limit)s
"""

LAST_RUNS = 20
# Runs and evaluations that the small drawing of an index is made of.
HISTORY = 60


@dataclass(frozen=True)
class LatestRun:
    """A run, of which index, and whether it is under way."""

    index: str
    under_way: bool
    run: PastRun


@dataclass(frozen=True)
class IndexNow:
    """One index: what the database says of it."""

    # stat, health: the rows of foh.index_stat, with `labelled`, and of foh.health.
    stat: dict[str, Any]
    health: dict[str, Any]
    # By version, as far as known.
    quality: list[Quality]


@dataclass(frozen=True)
class Overview:
    """All indexes that are watched, and their last runs, the newest first."""

    database: str
    indexes: list[IndexNow]
    runs: list[LatestRun]
    read_at: datetime
    # Why there are no runs, where they could not be read.
    unread: str = ""


def read_overview(connection: psycopg.Connection[Any], names: Sequence[str] = ()) -> Overview:
    """Read everything in one snapshot; of these indexes only, where names are given."""
    asked = {"names": list(names) or None, "limit": LAST_RUNS}
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        health = {row["name"]: row for row in read_health(connection)}
        with connection.cursor(row_factory=dict_row) as cursor:
            stats = cursor.execute(STAT, asked).fetchall()
        latest, unread = read_latest(connection, asked)
        indexes = [read_now(connection, stat, health[stat["name"]]) for stat in stats]
    return Overview(connection.info.dbname, indexes, latest, datetime.now(timezone.utc), unread)


def read_latest(connection: psycopg.Connection[Any], asked: dict[str, Any]) -> tuple[list[LatestRun], str]:
    try:
        with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(RUNS, asked).fetchall()
        return [LatestRun(row.pop("index"), row.pop("under_way"), past_run(row)) for row in rows], ""
    except Exception as error:
        if connection.closed:
            raise
        return [], f"The last runs cannot be read: {one_line(error)}"


def read_now(connection: psycopg.Connection[Any], stat: dict[str, Any], health: dict[str, Any]) -> IndexNow:
    """One index; what cannot be read of it is one of its problems, and no reason to show no index at all."""
    try:
        with connection.transaction():
            return IndexNow(stat, health, quality(read_history(connection, stat["name"], HISTORY)))
    except Exception as error:
        if connection.closed:
            raise
        problems = [*health["problems"], f"its runs cannot be read: {one_line(error)}"]
        return IndexNow(stat, {**health, "healthy": False, "problems": problems}, [])
