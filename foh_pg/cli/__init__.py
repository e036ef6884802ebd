"""The command `foh-pg`."""

from __future__ import annotations

from foh_pg.cli.app import app

__all__ = ["app"]
