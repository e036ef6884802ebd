from __future__ import annotations

from typing import NamedTuple


class Description(NamedTuple):
    """What an index is made of, as its function `describe` tells."""

    source: str
    key: str
    key_type: str
    embedding: str
    labels: str | None
    dimensions: int
    bits: int
    distance: str
    version: int
    vector_schema: str
    vector_type: int
