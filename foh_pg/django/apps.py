"""The application "foh_pg.django": system checks and a command, no models."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class FohConfig(AppConfig):
    name = "foh_pg.django"
    # By default Django takes the last part of the module's name, which is only "django".
    label = "foh_pg"
    verbose_name = "foh_pg"

    def ready(self) -> None:
        from foh_pg.django.checks import check_models

        checks.register(check_models, checks.Tags.models)
