from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, IndexName
from foh_pg.cli.output import say
from foh_pg.errors import InputError
from foh_pg.quality.report import page, read_content


def report(
    name: IndexName,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; - for standard output.", metavar="FILE")
    ] = Path("report.html"),
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="Show at most this many of the last runs.")
    ] = 200,
    dsn: Dsn = None,
) -> None:
    """Write one page about an index: quality over versions, what its runs did, lists, labels, lag, time.

    The page is one HTML file that loads nothing from elsewhere.
    """
    with session(dsn) as connection:
        text = page(read_content(connection, name, runs))
    if str(output) == "-":
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from error
    say(f"wrote {output}")
