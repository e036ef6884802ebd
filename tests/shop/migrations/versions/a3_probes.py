"""Read more lists in a search for products."""

from __future__ import annotations

from alembic import op

revision = "a3"
down_revision = "a2"


def upgrade() -> None:
    op.alter_foh_index("products_foh", probes=6)


def downgrade() -> None:
    op.alter_foh_index("products_foh", probes=5)
