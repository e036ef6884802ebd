"""A learned, label-aware vector index for PostgreSQL that keeps learning while rows stream in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foh_pg.errors import FohError
from foh_pg.version import __version__

if TYPE_CHECKING:
    from foh_pg.index import AsyncIndex, Index, Match, Suggestion

__all__ = ["AsyncIndex", "FohError", "Index", "Match", "Suggestion", "__version__"]

# Imported when first asked for: every command begins here, and `--help` needs neither psycopg nor numpy.
LATER = {
    "AsyncIndex": "foh_pg.index",
    "Index": "foh_pg.index",
    "Match": "foh_pg.index",
    "Suggestion": "foh_pg.index",
}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
