"""The functions, then the views that call them."""

from __future__ import annotations

from alembic.operations import Operations

from foh_pg.database.resources import sql_files
from foh_pg.database.script import apply

revision = "0002"
down_revision = "0001"


def upgrade(op: Operations) -> None:
    apply(op, *sql_files("functions", "views"))


def downgrade(op: Operations) -> None:
    apply(op, "install/drop_functions.sql")
