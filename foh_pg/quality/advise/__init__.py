"""Whether an index would help on a table: read a sample of it, measure the ways to rank, and decide."""

from __future__ import annotations

from foh_pg.quality.advise.condition import Condition, ask
from foh_pg.quality.advise.measuring import SIZES, Figure, measure
from foh_pg.quality.advise.sampling import LARGEST_SAMPLE, Sample, Table, find_index, read
from foh_pg.quality.advise.verdict import Advice, decide, nothing_to_learn, statement

__all__ = [
    "LARGEST_SAMPLE",
    "SIZES",
    "Advice",
    "Condition",
    "Figure",
    "Sample",
    "Table",
    "ask",
    "decide",
    "find_index",
    "measure",
    "nothing_to_learn",
    "read",
    "statement",
]
