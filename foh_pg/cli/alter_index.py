from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import say
from foh_pg.index import Index


@click.command()
@options.index_name
@click.option("--option", "-o", multiple=True, metavar="NAME=VALUE", help="An option; may be repeated.")
@click.option("--include", metavar="A,B", help="The columns to include from now on; '' for none.")
@options.dsn
def alter_index(name: str, option: tuple[str, ...], include: str | None, dsn: str | None) -> None:
    """Change options of an index: those of a search at once, the others with the next update."""
    changes = options.parse_pairs(option, "--option")
    if include is not None:
        changes["include"] = options.parse_names(include)
    if not changes:
        raise click.UsageError("pass --option or --include")
    with connected(dsn) as connection:
        Index.open(connection, name).alter(**changes)
    said = [*option, *([] if include is None else [f"includes {include or 'no columns'}"])]
    say(f"index {name!r}: {', '.join(said)}")
