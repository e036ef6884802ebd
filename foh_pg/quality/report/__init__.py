"""One page about an index: how good it is, what its runs did, and where the time went."""

from __future__ import annotations

from foh_pg.quality.report.content import Content, read_content
from foh_pg.quality.report.page import page

__all__ = ["Content", "page", "read_content"]
