from __future__ import annotations

from typing import Annotated

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, IndexName, Yes
from foh_pg.cli.output import say


def drop_index(
    name: IndexName,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing index is no error.")] = False,
    yes: Yes = False,
    dsn: Dsn = None,
) -> None:
    """Drop an index with everything that belongs to it. The application's table keeps its rows."""
    with session(dsn) as connection:
        if not yes:
            typer.confirm(f"Drop index {name!r} and what it learned?", abort=True, err=True)
        connection.execute("SELECT foh.drop_index(%s, if_exists => %s)", [name, if_exists])
    say(f"dropped index {name!r}")
