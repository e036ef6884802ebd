"""``manage.py foh``: the commands of foh-pg on a database of the settings, for the indexes of the models."""

from __future__ import annotations

import contextlib
from typing import Any

from click import UsageError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from foh_pg.django.checks import declared_names
from foh_pg.django.databases import dsn
from foh_pg.errors import InputError

COMMANDS = ("update", "status", "check", "build", "evaluate", "doctor")
MEANINGS = {3: "promises are broken", 4: "another updater is at work on an index", 5: "something is wrong"}


class Command(BaseCommand):
    help = "Update, build and look after the FOH indexes of this project, as the commands of foh-pg do."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("command", choices=COMMANDS, help="See foh-pg COMMAND --help.")
        names = "Names of indexes; those that the models declare unless given."
        parser.add_argument("indexes", nargs="*", metavar="INDEX", help=names)
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, choices=tuple(connections))
        parser.add_argument("--check", action="store_true", help="status: exit with 5 if one is not well.")
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        command, alias = options["command"], options["database"]
        try:
            extra = ["--dsn", dsn(connections[alias])]
        except InputError as error:
            raise CommandError(str(error)) from error
        extra += [f"--{flag}" for flag in ("json", "check") if options[flag]]
        codes = [
            self._run([command, *names, *extra]) for names in self._calls(command, options["indexes"], alias)
        ]
        failed = next((code for code in codes if code), 0)
        if failed:
            meaning = MEANINGS.get(failed, "it could not be done")
            raise CommandError(f"foh {command}: {meaning} (exit code {failed})", returncode=failed)

    def _calls(self, command: str, given: list[str], alias: str) -> list[list[str]]:
        """The indexes of each call: some commands take several, and some need none."""
        if command in ("status", "doctor"):
            return [given]
        names = given or declared_names(alias)
        if not names:
            raise CommandError("no model declares a FohIndex: name the indexes")
        return [names] if command == "update" else [[name] for name in names]

    def _run(self, arguments: list[str]) -> int:
        # Learning and command lines are a large import that other commands of manage.py can do without.
        from foh_pg.cli import app

        with contextlib.redirect_stdout(self.stdout), contextlib.redirect_stderr(self.stderr):
            try:
                return app(arguments, standalone_mode=False, prog_name="manage.py foh") or 0
            except UsageError as error:
                raise CommandError(error.format_message()) from error
