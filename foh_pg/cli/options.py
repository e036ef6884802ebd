"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

Dsn = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
    typer.Option(
        "--dsn", help="Connection string; without it libpq's environment variables decide.", metavar="DSN"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
IndexName = Annotated[str, typer.Argument(help="Name of the index.", metavar="INDEX", show_default=False)]
