"""What the commands share: where the rows come from, and where the figures go."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from foh_pg.errors import InputError
from lab import formats
from lab.summary import Report

data_file = click.option(
    "--data",
    required=True,
    metavar="FILE",
    help="digits, fashion-mnist, or a .npz (X and Y), .csv or .parquet file.",
)
json_file = click.option(
    "--json",
    type=click.Path(path_type=Path),
    help="Write everything measured to this file; - for standard output.",
)


def deliver(result: Report, json: Path | None) -> None:
    """Write the file that was asked for and print the tables, or nothing but JSON where it goes to -."""
    if json is not None and str(json) == "-":
        click.echo(formats.to_json(result))
        return
    if json is not None:
        formats.write_json(result, json)
    formats.print_tables(result, Console(width=None if sys.stdout.isatty() else 200, highlight=False))


def read_bits(text: str) -> list[int]:
    """Read lengths of codes.

    Examples
    --------
    >>> read_bits("64, 32,32")
    [32, 64]
    """
    try:
        bits = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise InputError(f"--bits takes numbers like 32,64, not {text!r}") from None
    if bits[0] < 1:
        raise InputError(f"--bits takes positive numbers, not {bits[0]}")
    return bits
