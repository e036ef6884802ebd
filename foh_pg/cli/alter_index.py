from __future__ import annotations

from typing import Annotated

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, IndexName, parse_pairs
from foh_pg.cli.output import say
from foh_pg.index import Index


def alter_index(
    name: IndexName,
    option: Annotated[
        list[str],
        typer.Option(
            "--option", "-o", help="An option, as NAME=VALUE; may be repeated.", metavar="NAME=VALUE"
        ),
    ],
    dsn: Dsn = None,
) -> None:
    """Change options of an index: those of a search at once, the others with the next update."""
    options = parse_pairs(option, "--option")
    with session(dsn) as connection:
        Index.open(connection, name).alter(**options)
    say(f"index {name!r}: {', '.join(option)}")
