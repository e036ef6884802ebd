"""What the `alembic` command runs in this folder: the runner behind `foh-pg migrate`, on libpq's environment.

`upgrade()` and `downgrade()` take the operations as an argument instead of importing `alembic.op`: that
module is one global, and an application may be in the middle of a migration of its own when it runs ours.
"""

from __future__ import annotations

import sys

from alembic import context

from foh_pg.postgres.connect import connect
from foh_pg.schema.migrations import migrate, offline

target = context.get_revision_argument() or "base"
assert isinstance(target, str), "the history has one branch"

if context.is_offline_mode():
    sys.stdout.write(offline(to=target, start=context.get_starting_revision_argument() or "base"))
else:
    with connect() as connection:
        migrate(connection, to=target)
