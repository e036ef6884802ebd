"""An index belongs to the owner of its table: roles see their own rows of what indexes share."""

from __future__ import annotations

from alembic.operations import Operations

from foh_pg.database.resources import sql_files
from foh_pg.database.script import apply, store

revision = "0003"
down_revision = "0002"


def upgrade(op: Operations) -> None:
    apply(op, "install/rights_tables.sql", "policies.sql")
    store(op, *sql_files("index"))
    apply(op, *sql_files("functions", "views"), "grants.sql", "install/rights_indexes.sql")


# The functions of the revision before are the present ones, which the next step down drops.
def downgrade(op: Operations) -> None:
    apply(op, "install/drop_policies.sql")
