from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import session
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.quality.health import MAX_LAG, read_health

UNHEALTHY = 5

max_lag_option = click.option(
    "--max-lag",
    type=click.FloatRange(min=0),
    default=MAX_LAG,
    help="Seconds that an entry may wait in the stream.",
)


@click.command()
@options.index_names
@max_lag_option
@options.dsn
@options.json
def health(names: tuple[str, ...], max_lag: float, dsn: str | None, json: bool) -> None:
    """Say whether the indexes are kept up to date: built, nothing waiting too long, no error.

    Looks at the indexes that are named, else at all. Exit code 0 if all are well, 5 if one is not, 1 if that
    could not be found out.
    """
    with session(dsn) as connection:
        rows = read_health(connection, names, max_lag)
    if json:
        print_json({"healthy": not any(row["problems"] for row in rows), "indexes": rows})
    elif rows:
        shown = [{**row, "problems": "; ".join(row["problems"]) or "none"} for row in rows]
        print_table(shown, ("name", "version", "stream", "lag_seconds", "last_run", "problems"))
    else:
        say("no index yet: foh-pg create-index --help")
    if any(row["problems"] for row in rows):
        raise click.exceptions.Exit(UNHEALTHY)
