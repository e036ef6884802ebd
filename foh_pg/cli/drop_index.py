from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import say


@click.command()
@options.index_name
@click.option("--if-exists", is_flag=True, help="A missing index is no error.")
@options.yes
@options.dsn
def drop_index(name: str, if_exists: bool, yes: bool, dsn: str | None) -> None:
    """Drop an index with everything that belongs to it. The application's table keeps its rows."""
    with connected(dsn) as connection:
        if not yes:
            if not if_exists:
                connection.execute("SELECT FROM foh._index(%s)", [name])
            click.confirm(f"Drop index {name!r} and what it learned?", abort=True, err=True)
        connection.execute("SELECT foh.drop_index(%s, if_exists => %s)", [name, if_exists])
    say(f"dropped index {name!r}")
