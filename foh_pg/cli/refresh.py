from __future__ import annotations

from typing import Annotated, Optional

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, IndexName
from foh_pg.cli.output import say
from foh_pg.index import Index


def refresh(
    name: IndexName,
    embedding: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--embedding", help="The column that took the place of the embedding."),
    ] = None,
    labels: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--labels", help="The column that took the place of the labels."),
    ] = None,
    dsn: Dsn = None,
) -> None:
    """Bring an index in line with its table after an ALTER: new names and types, missing triggers."""
    with session(dsn) as connection:
        index = Index.open(connection, name)
        index.refresh(embedding=embedding, labels=labels)
    about = index.about
    say(f"index {name!r} reads {about.embedding} of {about.source}, by the key {about.key}")
