from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import psycopg

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.trend import print_trend, read_trend
from foh_pg.errors import InputError
from foh_pg.model.ranking import ranking_text
from foh_pg.quality.health import read_health

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

# Of the last runs, so many are drawn on a page.
SHOWN_RUNS = 200


@click.command()
@options.index_names
@click.option("--check", is_flag=True, help="Exit with 5 if an index is not well, for monitoring.")
@options.max_lag
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all that is known of one index to a page for browsers; - for standard output.",
)
@options.dsn
@options.json
def status(
    names: tuple[str, ...], check: bool, max_lag: float, page: Path | None, dsn: str | None, json: bool
) -> None:
    """Show the indexes: what they hold, what waits for the updater, what is wrong and what to do.

    An index is well if it is built, its table is as it was, no entry has waited longer than --max-lag in its
    stream, and the last run ended without an error. With the name of one index also how it ranks and how its
    quality went over the versions.

    The page of --html has quality over versions, what runs did, lists, labels, lag and time. It is one file
    that loads nothing from elsewhere.
    """
    if page is not None:
        if len(names) != 1:
            raise click.UsageError("--html writes a page about one index: name it")
        write_page(names[0], page, dsn)
        return
    with connected(dsn) as connection:
        rows = read_status(connection, names, max_lag)
        trend = read_trend(connection, names[0]) if len(names) == 1 else None
    if json:
        if trend is not None:
            rows[0]["quality"] = [point.as_dict() for point in trend]
        print_json(rows)
    elif rows:
        print_table(rows, COLUMNS)
        for row in rows:
            for problem in row["problems"]:
                click.echo(f"{row['name']}: {problem}")
        if trend is not None:
            click.echo("\nranks by " + ranking_text(rows[0]["ranking"]))
            print_trend(names[0], trend)
    else:
        say("no index yet: foh-pg create-index --help")
    if check and not all(row["healthy"] for row in rows):
        raise click.exceptions.Exit(options.UNHEALTHY)


def write_page(name: str, output: Path, dsn: str | None) -> None:
    from foh_pg.quality.report import page, read_content

    with connected(dsn) as connection:
        text = page(read_content(connection, name, SHOWN_RUNS))
    if str(output) == "-":
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from error
    say(f"wrote {output}")


def read_status(
    connection: psycopg.Connection[dict[str, Any]], names: Sequence[str], max_lag: float
) -> list[dict[str, Any]]:
    """The rows of foh.index_stat, with what foh.health says of each index."""
    health = read_health(connection, names, max_lag)
    stat = {row["name"]: row for row in connection.execute("SELECT * FROM foh.index_stat")}
    return [
        {**stat[row["name"]], "healthy": row["healthy"], "problems": row["problems"]}
        for row in health
        # Another session may drop an index between the two statements.
        if row["name"] in stat
    ]
