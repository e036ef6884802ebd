"""The functions of version 0.1.0. Later ones belong to no revision: see `foh_pg.schema.migrations`."""

from __future__ import annotations

from alembic.operations import Operations

revision = "0002"
down_revision = "0001"


def upgrade(op: Operations) -> None:
    """Nothing: there was one release with these functions, and this is another."""


def downgrade(op: Operations) -> None:
    """Nothing: functions are dropped before the first step down."""
