from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import psycopg

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.errors import IndexNotFound
from foh_pg.model.ranking import ranking_text
from foh_pg.quality.history import Quality, quality

# What fits a screen; --json has everything.
COLUMNS = (
    "name",
    "source",
    "status",
    "version",
    "trained",
    "bits",
    "rows",
    "centers",
    "stale",
    "stream",
    "deferred",
)

# Versions whose quality is shown.
LAST = 10

STATUS = """
SELECT s.*, h.healthy, h.problems
FROM foh.health(pg_catalog.make_interval(secs => %(max_lag)s)) h JOIN foh.index_stat s ON s.name = h.name
WHERE h.name = ANY (%(names)s::text[]) OR %(names)s::text[] IS NULL ORDER BY h.name
"""


@click.command()
@options.index_names
@click.option("--check", is_flag=True, help="Exit with 5 if an index is not well, for monitoring.")
@options.max_lag
@options.dsn
@options.json
def status(names: tuple[str, ...], check: bool, max_lag: float, dsn: str | None, json: bool) -> None:
    """Show the indexes: what they hold, what waits for the updater, what is wrong and what to do.

    An index is well if it is built, its table is as it was, no entry has waited longer than --max-lag in its
    stream, and the last run ended without an error. With the name of one index also how it ranks and how its
    quality went over the versions.
    """
    with connected(dsn) as connection:
        rows = read_status(connection, names, max_lag)
        trend = quality(connection, names[0]) if len(names) == 1 else None
    if json:
        if trend is not None:
            rows[0]["quality"] = [point._asdict() for point in trend]
        print_json(rows)
    elif rows:
        print_table(rows, COLUMNS)
        for row in rows:
            for problem in row["problems"]:
                click.echo(f"{row['name']}: {problem}")
        if trend is not None:
            click.echo("\nranks by " + ranking_text(rows[0]["ranking"]))
            if trend:
                print_table([as_row(point) for point in trend[-LAST:]])
            else:
                say(f"its quality was not measured yet: run foh-pg evaluate {names[0]}")
    else:
        say("no index yet: foh-pg create-index --help")
    if check and not all(row["healthy"] for row in rows):
        raise click.exceptions.Exit(options.UNHEALTHY)


def read_status(
    connection: psycopg.Connection[dict[str, Any]], names: Sequence[str], max_lag: float
) -> list[dict[str, Any]]:
    """The rows of foh.index_stat, with what foh.health says of each index."""
    rows = connection.execute(STATUS, {"max_lag": max_lag, "names": list(names) or None}).fetchall()
    missing = set(names) - {row["name"] for row in rows}
    if missing:
        existing = connection.execute("SELECT name FROM foh.index")
        raise IndexNotFound.named(min(missing), (row["name"] for row in existing))
    return rows


def as_row(point: Quality) -> dict[str, Any]:
    """The quality of one version."""
    return {
        "version": point.version,
        "at": point.at,
        "held-out mAP": point.map,
        "P@10": point.score("index", "p10"),
        "recall@10": point.score("index", "recall10"),
        "both@10": point.score("index", "both10"),
        "P@10 of exact": point.score("exact", "p10"),
        "distance": point.score("index", "distance10"),
    }
