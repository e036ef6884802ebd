from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import session
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.trend import print_trend, read_trend
from foh_pg.errors import IndexNotFound
from foh_pg.tables.ranking import ranking_text

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


@click.command()
@click.argument("name", metavar="[INDEX]", required=False)
@options.dsn
@options.json
def status(name: str | None, dsn: str | None, json: bool) -> None:
    """Show the indexes: what they hold, what waits for the updater, how stale their codes are.

    With the name of one index also how it ranks and how its quality went over the versions.
    """
    with session(dsn) as connection:
        rows = connection.execute(
            "SELECT * FROM foh.index_stat WHERE name = %(name)s OR %(name)s::text IS NULL ORDER BY name",
            {"name": name},
        ).fetchall()
        if name is not None and not rows:
            raise IndexNotFound.named(name)
        trend = None if name is None else read_trend(connection, name)
    if json:
        if trend is not None:
            rows[0]["quality"] = [point.as_dict() for point in trend]
        print_json(rows)
    elif rows:
        print_table(rows, COLUMNS)
        if name is not None:
            click.echo("\nranks by " + ranking_text(rows[0]["ranking"]))
        if name is not None and trend is not None:
            print_trend(name, trend)
    else:
        say("no index yet: foh-pg create-index --help")
