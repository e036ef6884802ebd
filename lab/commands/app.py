"""The command `python -m lab` itself: it loads the one command that runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from foh_pg.cli.output import fail
from foh_pg.errors import FohError

SUMMARIES = {
    "search": "Search the same rows with the index and with all that pgvector offers.",
    "stream": "Let rows arrive in order: quality and cost after each batch.",
    "accuracy": "Rank a base by codes, with every learner.",
    "paper": "Print the tables of the paper on the data at hand.",
    "study": "Run one of the single studies.",
}


class Commands(click.Group):
    """Imports the module of a command when it runs, and turns errors a user can act on into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in SUMMARIES:
            return None
        command = getattr(import_module(f"lab.commands.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FohError as error:
            fail(error)
            raise click.exceptions.Exit(1) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


app = Commands(
    "lab",
    help="Measure what the index brings on a data set, beside its rivals.",
    context_settings={"show_default": True, "max_content_width": 110},
)
