"""Django's `migrate`, which looks for changes as `makemigrations` does."""

from __future__ import annotations

from django.core.management.commands import migrate

from foh_pg.django.autodetector import FohAutodetector


class Command(migrate.Command):
    """The same command with our autodetector."""

    autodetector = FohAutodetector
