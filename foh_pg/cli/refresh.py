from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import say
from foh_pg.index import Index


@click.command()
@options.index_name
@click.option("--embedding", help="The column that took the place of the embedding.")
@click.option("--labels", help="The column that took the place of the labels.")
@options.dsn
def refresh(name: str, embedding: str | None, labels: str | None, dsn: str | None) -> None:
    """Bring an index in line with its table after an ALTER: new names and types, missing triggers."""
    with connected(dsn) as connection:
        index = Index.open(connection, name)
        index.refresh(embedding=embedding, labels=labels)
    about = index.about
    say(f"index {name!r} reads {about.embedding} of {about.source}, by the key {', '.join(about.key)}")
