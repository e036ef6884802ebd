from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import say
from foh_pg.index import Index


@click.command()
@options.index_name
@click.option(
    "--option", "-o", multiple=True, required=True, metavar="NAME=VALUE", help="An option; may be repeated."
)
@options.dsn
def alter_index(name: str, option: tuple[str, ...], dsn: str | None) -> None:
    """Change options of an index: those of a search at once, the others with the next update."""
    changes = options.parse_pairs(option, "--option")
    with connected(dsn) as connection:
        Index.open(connection, name).alter(**changes)
    say(f"index {name!r}: {', '.join(option)}")
