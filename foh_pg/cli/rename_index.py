from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import say


@click.command()
@options.index_name
@click.argument("new_name", metavar="NEW_NAME")
@options.dsn
def rename_index(name: str, new_name: str, dsn: str | None) -> None:
    """Give an index another name: what it holds, what it learned and who may search it stay.

    An index that was built beside another so takes the other's place, once that is dropped: searches need not
    change.
    """
    with connected(dsn) as connection:
        connection.execute("SELECT foh.rename_index(%s, %s)", [name, new_name])
    say(f"index {name!r} is now {new_name!r}")
