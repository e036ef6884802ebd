"""Django's makemigrations with our autodetector."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import makemigrations

from foh_pg.django.autodetector import FohAutodetector


class Command(makemigrations.Command):
    """The same command; a renamed field of an index is followed with RefreshFohIndex."""

    # Of Django 5.2 and later.
    autodetector = FohAutodetector

    def handle(self, *arguments: Any, **options: Any) -> Any:
        # Before Django 5.2 the command reads the name in its module.
        theirs = makemigrations.MigrationAutodetector
        makemigrations.MigrationAutodetector = FohAutodetector
        try:
            return super().handle(*arguments, **options)
        finally:
            makemigrations.MigrationAutodetector = theirs
