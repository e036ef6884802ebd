"""The command `foh-pg` itself, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from foh_pg.cli.commands import load, stand_ins
from foh_pg.errors import FohError
from foh_pg.version import __version__

EXIT_CODES = """
Connects to --dsn, else to what libpq's environment variables (PGHOST, PGDATABASE, PGSERVICE, ...) say.

Data goes to standard output, everything else to standard error.

Exit codes: 0 done; 1 it could not be done, and one line says why; 2 wrong usage; 3 `check` found violations;
4 `update` skipped an index that another updater is at work on; 5 `status --check` or `doctor` found
something wrong.
"""


class Commands(click.Group):
    """Loads the one command that runs, and turns errors a user can act on into one line and exit code 1.

    Other errors keep their traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        # In the order of use, where click would sort them by name.
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, less) has seen enough; Python must not complain when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None
        except Exception as error:
            if not can_be_acted_on(error):
                raise
            from foh_pg.cli.output import fail

            fail(error)
            raise click.exceptions.Exit(1) from error


def can_be_acted_on(error: Exception) -> bool:
    if isinstance(error, FohError):
        return True
    # Where psycopg was not imported, no error of its can have been raised.
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.Error)


app = Commands(
    "foh-pg",
    commands=stand_ins(),
    help="A learned, label-aware vector index for PostgreSQL.\n" + EXIT_CODES,
    context_settings={"show_default": True, "max_content_width": 110},
)
app = click.version_option(__version__, message="foh-pg %(version)s")(app)
