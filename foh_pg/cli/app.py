"""The command `foh-pg` itself, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from foh_pg.cli.commands import load, stand_ins
from foh_pg.errors import FohError

EXIT_CODES = """
Connects to --dsn, else to what libpq's environment variables (PGHOST, PGDATABASE, PGSERVICE, ...) say.

Data goes to standard output, everything else to standard error.

Exit codes: 0 done; 1 it could not be done, and one line says why; 2 wrong usage; 3 `check` found violations;
4 `update` skipped an index that another updater is at work on; 5 `health` or `doctor` found something wrong.
"""


class Commands(TyperGroup):
    """Loads the one command that runs, and turns errors a user can act on into one line and exit code 1.

    Other errors keep their traceback.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = stand_ins()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if name is None or command is None else load(name), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, less) has seen enough; Python must not complain when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except Exception as error:
            if not can_be_acted_on(error):
                raise
            from foh_pg.cli.output import fail

            fail(error)
            raise typer.Exit(1) from error


def can_be_acted_on(error: Exception) -> bool:
    if isinstance(error, FohError):
        return True
    # Where psycopg was not imported, no error of its can have been raised.
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.Error)


app = typer.Typer(
    cls=Commands,
    name="foh-pg",
    help="A learned, label-aware vector index for PostgreSQL.\n" + EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def main() -> None:
    """Nothing is done before the command: its help is that of the application."""
