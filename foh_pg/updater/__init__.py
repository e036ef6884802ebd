"""The updater: builds an index, and keeps it up to date with what is written to its table."""

from __future__ import annotations

from foh_pg.runs.run import Progress, Run, Stopped
from foh_pg.updater.build import build, rebuild, rollback
from foh_pg.updater.update import BATCH_SIZE, update

__all__ = ["BATCH_SIZE", "Progress", "Run", "Stopped", "build", "rebuild", "rollback", "update"]
