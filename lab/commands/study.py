"""python -m lab study: single questions, each a program of its own."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

import click

from lab import studies

# Modules that the studies share.
SHARED = {"report", "served", "updating"}
NAMES = [module.name for module in pkgutil.iter_modules(studies.__path__) if module.name not in SHARED]


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run one of the single studies.",
)
@click.argument("name", type=click.Choice(NAMES))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def study(name: str, arguments: tuple[str, ...]) -> None:
    """Run one of the single studies; `python -m lab study NAME --help` says what it takes."""
    sys.argv = [f"python -m lab study {name}", *arguments]
    import_module(f"lab.studies.{name}").main()
