from __future__ import annotations

from dataclasses import dataclass

# Searches or updates fail or are wrong; they are slower or worse than they could be; it is worth knowing.
ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be: what is wrong, and what to do about it."""

    check: str
    severity: str
    found: str
    cure: str
    index: str | None = None
