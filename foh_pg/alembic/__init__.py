"""FOH indexes in an application's own Alembic migrations.

Alembic 1.18 and later find this package by its entry point. With an older one, put ``import foh_pg.alembic``
into `env.py`; it does no harm with a newer one.
"""

from __future__ import annotations

import alembic

from foh_pg.alembic.plugin import ensure_registered

# Its last line. Without it Alembic is still being imported, and calls setup() by the entry point.
if hasattr(alembic, "__version__"):
    ensure_registered()
