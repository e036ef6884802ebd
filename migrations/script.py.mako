"""${message}."""

from __future__ import annotations

from alembic.operations import Operations

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade(op: Operations) -> None:
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade(op: Operations) -> None:
    ${downgrades if downgrades else "raise NotImplementedError"}
