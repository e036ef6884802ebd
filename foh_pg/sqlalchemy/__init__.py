"""FOH indexes in SQLAlchemy 2: declare one on a model, search it, compose the result with other SQL."""

from __future__ import annotations

from foh_pg.sqlalchemy.index import FOHIndex
from foh_pg.sqlalchemy.search import foh_explain, foh_search, select_nearest

__all__ = ["FOHIndex", "foh_explain", "foh_search", "select_nearest"]
