"""Geometry bits and two levels of centers; and an index belongs to the owner of its table."""

from __future__ import annotations

from alembic.operations import Operations

from foh_pg.schema.script import apply

revision = "0003"
down_revision = "0002"


def upgrade(op: Operations) -> None:
    apply(op, "0003_tables.sql", "0003_indexes.sql", "0003_policies.sql")


def downgrade(op: Operations) -> None:
    apply(op, "0003_down.sql")
