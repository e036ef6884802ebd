from __future__ import annotations

from dataclasses import dataclass

# Searches or updates fail or are wrong; they are slower or worse than they could be; it is worth knowing.
ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    Attributes
    ----------
    check : str
        What was looked at: pgvector, schema, rights, triggers, job, stream, model and so on.
    severity : str
        error, warning or note. A note alone leaves the exit code of `foh-pg doctor` at 0.
    found, cure : str
        What is wrong, and what to do about it.
    index : str, optional
        The index that it concerns.
    """

    check: str
    severity: str
    found: str
    cure: str
    index: str | None = None
