"""What the commands of `bench` share: where the rows come from, and where the figures go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from foh_pg.bench import formats
from foh_pg.bench.summary import Report

Data = Annotated[
    str,
    typer.Option(
        "--data", help="digits, fashion-mnist, or a .npz (X and Y), .csv or .parquet file.", metavar="FILE"
    ),
]
JsonFile = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
    typer.Option("--json", help="Write everything measured to this file; - for standard output."),
]
HtmlFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--html", help="Write a page with tables and plots to this file."),
]


def deliver(
    result: Report,
    json: Path | None,
    html: Path | None = None,
    print_tables: Callable[[Report, Console], None] = formats.print_tables,
) -> None:
    """Write the files that were asked for and print the tables, or nothing but JSON where it goes to -."""
    if json is not None and str(json) == "-":
        typer.echo(formats.to_json(result))
        return
    if json is not None:
        formats.write_json(result, json)
    if html is not None:
        formats.write_html(result, html)
    print_tables(result, Console(width=None if sys.stdout.isatty() else 200, highlight=False))
