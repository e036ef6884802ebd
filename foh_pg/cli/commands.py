"""The commands of `foh-pg`: where each is, and the line that stands for it in the list of all.

A module of a command is imported when its command runs: together they need numpy, scipy, SQLAlchemy and
Alembic, which take a second to import. A test compares the lines with the docstrings.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click


class Card(NamedTuple):
    """`address` is module:name of the command, `summary` the first sentences of its help."""

    address: str
    summary: str


CARDS = {
    "demo": Card(
        "foh_pg.cli.demo:demo",
        "Show an index at work on 4 000 Debian packages, in an embedded PostgreSQL in a directory of yours.",
    ),
    "advise": Card(
        "foh_pg.cli.advise:advise",
        "Say whether an index would help on a table, with how many bits, or what would be the better choice.",
    ),
    "migrate": Card(
        "foh_pg.cli.migrate:migrate", "Install schema foh, bring it up to date, or take it back."
    ),
    "create-index": Card(
        "foh_pg.cli.create_index:create_index",
        "Create an index on a table; every write is captured from then on. Prints its name.",
    ),
    "alter-index": Card(
        "foh_pg.cli.alter_index:alter_index",
        "Change options of an index: those of a search at once, the others with the next update.",
    ),
    "drop-index": Card(
        "foh_pg.cli.drop_index:drop_index",
        "Drop an index with everything that belongs to it. The application's table keeps its rows.",
    ),
    "build": Card(
        "foh_pg.cli.build:build",
        "Place the rows that a table has: train on a sample of them, encode and place each once.",
    ),
    "rebuild": Card(
        "foh_pg.cli.build:rebuild",
        "Train a new model and place all rows by it, while the present one goes on serving.",
    ),
    "rollback": Card(
        "foh_pg.cli.build:rollback",
        "Put the model of an earlier version back. Every row of the table is read and encoded again.",
    ),
    "update": Card(
        "foh_pg.cli.update:update",
        "Merge what was written into the lists, and learn from it. Safe to kill at any moment.",
    ),
    "watch": Card(
        "foh_pg.cli.watch:watch",
        "Keep indexes up to date until SIGTERM or SIGINT: look at the streams, update what is behind.",
    ),
    "search": Card(
        "foh_pg.cli.search:search",
        "Find the rows nearest to a vector, or to a row of the table: key, bits that differ, score.",
    ),
    "evaluate": Card(
        "foh_pg.cli.evaluate:evaluate",
        "Measure the index by label and by nearness, beside the exact distance and random hyperplanes.",
    ),
    "report": Card(
        "foh_pg.cli.report:report",
        "Write one page about an index: quality over versions, what its runs did, lists, labels, lag, time.",
    ),
    "doctor": Card(
        "foh_pg.cli.doctor:doctor",
        "Say what is wrong with an installation and how to put it right. Changes nothing.",
    ),
    "health": Card(
        "foh_pg.cli.health:health",
        "Say whether the indexes are kept up to date: built, nothing waiting too long, no error.",
    ),
    "status": Card(
        "foh_pg.cli.status:status",
        "Show the indexes: what they hold, what waits for the updater, how stale their codes are.",
    ),
    "check": Card(
        "foh_pg.cli.check:check",
        "Verify what an index promises on the live data; one line per violation. Reads the whole table.",
    ),
    "refresh": Card(
        "foh_pg.cli.refresh:refresh",
        "Bring an index in line with its table after an ALTER: new names and types, missing triggers.",
    ),
    "repair": Card(
        "foh_pg.cli.repair:repair",
        "Queue what the triggers did not see: after replication, a data-only restore, ATTACH PARTITION.",
    ),
    "grant": Card(
        "foh_pg.cli.grant:grant",
        "Let roles search, update or create indexes, and say what each right exposes.",
    ),
    "sql": Card("foh_pg.cli.sql:sql", "Print SQL instead of running it."),
    "bench": Card(
        "foh_pg.cli.bench:bench", "Measure what the index brings on your data, against its rivals."
    ),
    "version": Card(
        "foh_pg.cli.version:version",
        "Print the version of the package and the revision of schema foh it was written for.",
    ),
}


def stand_ins() -> dict[str, click.Command]:
    """What the list of commands is printed from: names and summaries, nothing that can run."""
    return {name: click.Command(name, short_help=card.summary) for name, card in CARDS.items()}


def load(name: str) -> click.Command:
    """The command itself, with its options."""
    module, _, attribute = CARDS[name].address.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    return command
