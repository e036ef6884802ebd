"""The SQL of an index's own objects, the functions, and the views that call them."""

from __future__ import annotations

from alembic.operations import Operations

from foh_pg.database.resources import sql_files
from foh_pg.database.script import apply, store

revision = "0002"
down_revision = "0001"


# There is no index yet when this runs. A later migration that changes the SQL of an index's own objects ends
# with SELECT foh._define_functions(i) FROM foh.index i.
def upgrade(op: Operations) -> None:
    store(op, *sql_files("index"))
    apply(op, *sql_files("functions", "views"), "grants.sql")


def downgrade(op: Operations) -> None:
    apply(op, "install/drop_functions.sql")
