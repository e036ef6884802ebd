"""Ask an index from Python: the calls of its SQL functions, with vectors in binary, sync and async."""

from __future__ import annotations

from foh_pg.index.async_index import AsyncIndex
from foh_pg.index.results import Description, Match, Suggested, Suggestion
from foh_pg.index.sync_index import Index

__all__ = ["AsyncIndex", "Description", "Index", "Match", "Suggested", "Suggestion"]
