"""`foh-pg demo`: an index on real rows, from an empty directory, in a minute or two."""

from __future__ import annotations

from foh_pg.demo.story import DATABASE, tell

__all__ = ["DATABASE", "tell"]
