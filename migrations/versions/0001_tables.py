"""The tables that all indexes share."""

from __future__ import annotations

from alembic.operations import Operations

from foh_pg.schema.script import apply

revision = "0001"
down_revision = None


def upgrade(op: Operations) -> None:
    apply(op, "0001_tables.sql")


def downgrade(op: Operations) -> None:
    apply(op, "0001_down.sql")
