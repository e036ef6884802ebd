"""The commands of `foh-pg`, and the line that stands for each in the list of all.

A module of a command is imported when its command runs: together they need numpy, scipy, SQLAlchemy and
Alembic, which take a second to import. A test compares the lines with the docstrings.
"""

from __future__ import annotations

from importlib import import_module

import click

# The first sentences of their help, in the order of use.
SUMMARIES = {
    "demo": (
        "Show an index at work on 4 000 Debian packages, in an embedded PostgreSQL in a directory of yours."
    ),
    "advise": (
        "Say whether an index would help on a table, with how many bits, or what would be the better choice."
    ),
    "migrate": "Install schema foh, bring it up to date, or take it back.",
    "create-index": "Create an index on a table; every write is captured from then on. Prints its name.",
    "alter-index": "Change an index: its options, its name, or the columns of the table that it reads.",
    "drop-index": "Drop an index with everything that belongs to it. The application's table keeps its rows.",
    "build": "Place the rows that a table has: train on a sample of them, encode and place each once.",
    "update": "Merge what was written into the lists, and learn from it. Safe to kill at any moment.",
    "watch": "Keep indexes up to date until SIGTERM or SIGINT: look at the streams, update what is behind.",
    "search": "Find the rows nearest to a vector, or to a row of the table: key, distance, score.",
    "labels": (
        "Suggest labels for a vector, for a row, or for all rows that have none: label, chance, neighbors."
    ),
    "evaluate": "Measure the index by label and by nearness, beside the exact distance.",
    "doctor": "Say what is wrong with an installation and how to put it right. Changes nothing.",
    "status": "Show the indexes: what they hold, what waits for the updater, what is wrong and what to do.",
    "check": "Verify what an index promises on the live data; one line per violation. Reads the whole table.",
    "grant": "Let a role search indexes or keep them up to date, and say what each right exposes.",
}


def stand_ins() -> dict[str, click.Command]:
    """What the list of commands is printed from: names and summaries, nothing that can run."""
    return {name: click.Command(name, short_help=summary) for name, summary in SUMMARIES.items()}


def load(name: str) -> click.Command:
    """The command itself, with its options."""
    attribute = name.replace("-", "_")
    command = getattr(import_module(f"foh_pg.cli.{attribute}"), attribute)
    assert isinstance(command, click.Command)
    return command
