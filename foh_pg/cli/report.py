from __future__ import annotations

from pathlib import Path

import click

from foh_pg.cli import options
from foh_pg.cli.database import session
from foh_pg.cli.output import say
from foh_pg.errors import InputError
from foh_pg.quality.report import page, read_content


@click.command()
@options.index_name
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    metavar="FILE",
    help="File to write; - for standard output.",
)
@click.option(
    "--runs", type=click.IntRange(min=1), default=200, help="Show at most this many of the last runs."
)
@options.dsn
def report(name: str, output: Path, runs: int, dsn: str | None) -> None:
    """Write one page about an index: quality over versions, what its runs did, lists, labels, lag, time.

    The page is one HTML file that loads nothing from elsewhere.
    """
    with session(dsn) as connection:
        text = page(read_content(connection, name, runs))
    if str(output) == "-":
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from error
    say(f"wrote {output}")
