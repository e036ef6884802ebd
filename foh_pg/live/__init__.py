"""The pages of a watcher for people: how all indexes are, and the report of each, kept fresh."""

from foh_pg.live.pages import LivePages

__all__ = ["LivePages"]
