"""What the page about an index is made of, read from the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, tuple_row

from foh_pg.errors import BuildError, IndexNotFound
from foh_pg.quality.history import PastRun, read_history

STAT = "SELECT * FROM foh.index_stat WHERE name = %(name)s"
NAMES = "SELECT foh._names(i) FROM foh.index i WHERE i.name = %(name)s"
LENGTHS = "SELECT c.length FROM {center} c ORDER BY c.length"
# A label of a row that has it twice counts once.
LABELS = "SELECT * FROM {label_counts}({percent}, {top})"

# Rows whose labels are counted, about; the page must not cost a scan of a table of any size.
SAMPLE = 200_000
TOP = 20


@dataclass(frozen=True)
class Content:
    """What the page shows."""

    # The row of foh.index_stat.
    stat: dict[str, Any]
    # The last runs and the last evaluations, the oldest first.
    runs: list[PastRun]
    # Of all lists.
    lengths: list[int]
    # The most frequent ones, counted in `sampled` (a share of the table).
    labels: list[tuple[str, int]]
    sampled: float
    read_at: datetime

    @property
    def updates(self) -> list[PastRun]:
        """Runs that did something to the index; evaluations are left out."""
        return [run for run in self.runs if run.kind != "evaluate" and run.phases]


def read_content(
    connection: psycopg.Connection[Any], name: str, runs: int = 200, sample: int = SAMPLE
) -> Content:
    """Read everything in one snapshot; labels of about `sample` rows."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(row_factory=dict_row) as cursor:
            stat = cursor.execute(STAT, {"name": name}).fetchone()
        if stat is None:
            raise IndexNotFound.named(name)
        if stat["rows"] is None:
            raise BuildError(f"index {name!r}: {stat['status']}")
        with connection.cursor(row_factory=tuple_row) as cursor:
            (found,) = cursor.execute(NAMES, {"name": name}).fetchone() or ({},)
            names = {key: sql.SQL(str(value)) for key, value in found.items()}
            lengths = [row[0] for row in cursor.execute(sql.SQL(LENGTHS).format(**names))]
            share = min(1.0, sample / max(1, stat["rows"] + stat["stream"]))
            labels = []
            if found.get("labels"):
                percent, top = sql.Literal(100 * share), sql.Literal(TOP)
                statement = sql.SQL(LABELS).format(percent=percent, top=top, **names)
                labels = [(row[0], row[1]) for row in cursor.execute(statement)]
        past = read_history(connection, name, runs)
    return Content(stat, past, lengths, labels, share, datetime.now(timezone.utc))
