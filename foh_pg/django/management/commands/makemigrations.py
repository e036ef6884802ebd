"""Django's makemigrations with our autodetector."""

from __future__ import annotations

from django.core.management.commands import makemigrations

from foh_pg.django.autodetector import FohAutodetector


class Command(makemigrations.Command):
    """The same command; a renamed field of an index is followed with RefreshFohIndex."""

    autodetector = FohAutodetector
