from __future__ import annotations

from typing import Annotated, Optional

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, Json
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.quality.health import MAX_LAG, read_health

UNHEALTHY = 5


def health(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
        typer.Argument(help="Only these indexes.", metavar="[INDEX]...", show_default=False),
    ] = None,
    max_lag: Annotated[
        float, typer.Option("--max-lag", min=0, help="Seconds that an entry may wait in the stream.")
    ] = MAX_LAG,
    dsn: Dsn = None,
    json: Json = False,
) -> None:
    """Say whether the indexes are kept up to date: built, nothing waiting too long, no error.

    Exit code 0 if all are well, 5 if one is not, 1 if that could not be found out.
    """
    with session(dsn) as connection:
        rows = read_health(connection, names or (), max_lag)
    if json:
        print_json({"healthy": not any(row["problems"] for row in rows), "indexes": rows})
    elif rows:
        shown = [{**row, "problems": "; ".join(row["problems"]) or "none"} for row in rows]
        print_table(shown, ("name", "version", "stream", "lag_seconds", "last_run", "problems"))
    else:
        say("no index yet: foh-pg create-index --help")
    if any(row["problems"] for row in rows):
        raise typer.Exit(UNHEALTHY)
