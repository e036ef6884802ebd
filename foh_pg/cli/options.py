"""The options that several commands share."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any, Optional

import typer

from foh_pg.errors import InputError

Dsn = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
    typer.Option(
        "--dsn", help="Connection string; without it libpq's environment variables decide.", metavar="DSN"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
IndexName = Annotated[str, typer.Argument(help="Name of the index.", metavar="INDEX", show_default=False)]


def parse_pairs(pairs: list[str], hint: str) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be, else text: ``probes=8``, ``triggers=row``."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not of the form NAME=VALUE", param_hint=hint)
        try:
            values[name] = jsonlib.loads(value)
        except ValueError:
            values[name] = value
    return values


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
