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
@click.option("--refresh", is_flag=True, help="Follow an ALTER TABLE: new names and types, lost triggers.")
@click.option("--embedding", metavar="COLUMN", help="The column that took the place of the embedding.")
@click.option("--labels", metavar="COLUMN", help="The column that took the place of the labels.")
@click.option("--rename", metavar="NAME", help="Another name; searches under the old name fail from then on.")
@options.dsn
def alter_index(
    name: str,
    option: tuple[str, ...],
    include: str | None,
    refresh: bool,
    rename: str | None,
    dsn: str | None,
    **columns: str | None,
) -> None:
    """Change an index: its options, its name, or the columns of the table that it reads.

    Options of a search take effect at once, the others with the next update. After a rename the index has the
    rows, the model and the readers that it had. An index that was built beside another one so takes the place
    of the other, once that is dropped.
    """
    changes = options.parse_pairs(option, "--option")
    if include is not None:
        changes["include"] = options.parse_names(include)
    refresh |= any(columns.values())
    if not (changes or refresh or rename):
        raise click.UsageError("say what to change: --option, --include, --refresh or --rename")
    with connected(dsn) as connection, connection.transaction():
        index = Index.open(connection, name)
        if refresh:
            index.refresh(**columns)
            about = index.about
            say(
                f"index {name!r} reads {about.embedding} of {about.source}, by the key {', '.join(about.key)}"
            )
        if changes:
            index.alter(**changes)
            said = [*option, *([] if include is None else [f"includes {include or 'no columns'}"])]
            say(f"index {name!r}: {', '.join(said)}")
        if rename:
            index.rename(rename)
            say(f"index {name!r} is now {rename!r}")
