"""A learned, label-aware vector index for PostgreSQL that keeps learning while rows stream in."""

from __future__ import annotations

from foh_pg.errors import FohError
from foh_pg.index import AsyncIndex, Index, Match
from foh_pg.version import __version__

__all__ = ["AsyncIndex", "FohError", "Index", "Match", "__version__"]
