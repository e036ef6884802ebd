"""FOH indexes in an application's own Alembic migrations.

Alembic 1.18 and later find this package by its entry point. With an older one, put ``import foh_pg.alembic``
into `env.py`; it does no harm with a newer one.
"""

from __future__ import annotations

import alembic

from foh_pg.alembic.plugin import ensure_registered

# Set last in Alembic's own import. Before that, Alembic will still call setup() through the entry point.
if hasattr(alembic, "__version__"):
    ensure_registered()
