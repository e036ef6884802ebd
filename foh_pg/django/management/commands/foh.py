"""``manage.py foh``: the commands of foh-pg on a database of the settings, for the indexes of the models."""

from __future__ import annotations

import contextlib
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from foh_pg.cli.commands import SUMMARIES
from foh_pg.django.checks import declared_names
from foh_pg.django.databases import dsn
from foh_pg.errors import InputError

COMMANDS = ("update", "status", "check", "build", "evaluate", "doctor")
MEANINGS = {3: "promises are broken", 4: "another updater is at work on an index", 5: "something is wrong"}


class Command(BaseCommand):
    help = "Update, build and look after the FOH indexes of this project."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        for name in COMMANDS:
            command = commands.add_parser(name, help=SUMMARIES[name], description=SUMMARIES[name])
            command.add_argument(
                "indexes",
                nargs="*",
                metavar="INDEX",
                help="Names of indexes; those that the models declare unless given.",
            )
            command.add_argument("--database", default=DEFAULT_DB_ALIAS, help="Of DATABASES in the settings.")
            if name == "status":
                command.add_argument(
                    "--check", action="store_true", help="Exit with 5 if an index is not well."
                )
            command.add_argument("--json", action="store_true", help="Print JSON, for programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        command, alias = options["command"], options["database"]
        if alias not in connections:
            known = ", ".join(connections)
            raise CommandError(f"there is no database {alias!r} in the settings; there are {known}")
        names = options["indexes"] or declared_names(alias)
        if not names and command not in ("status", "doctor"):
            raise CommandError("no model declares a FohIndex: name the indexes")
        try:
            where = dsn(connections[alias])
        except InputError as error:
            raise CommandError(str(error)) from error
        flags = [f"--{flag}" for flag in ("json", "check") if options.get(flag)]
        extra = ["--dsn", where, *flags]
        codes = [
            self._run([command, *each, *extra]) for each in self._calls(command, options["indexes"], names)
        ]
        failed = next((code for code in codes if code), 0)
        if failed:
            meaning = MEANINGS.get(failed, "it could not be done")
            raise CommandError(f"foh {command}: {meaning} (exit code {failed})", returncode=failed)

    def _calls(self, command: str, given: list[str], names: list[str]) -> list[list[str]]:
        """One call serves several indexes where a command takes several."""
        if command == "update":
            return [names]
        if command == "status":
            # Without names: all indexes of the database.
            return [given]
        if command == "doctor":
            return [[]]
        return [[name] for name in names]

    def _run(self, arguments: list[str]) -> int:
        # Learning and command lines are a large import that other commands of manage.py can do without.
        from foh_pg.cli import app

        with contextlib.redirect_stdout(self.stdout), contextlib.redirect_stderr(self.stderr):
            return app(arguments, standalone_mode=False, prog_name="manage.py foh") or 0
