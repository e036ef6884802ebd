"""Findings, and where the checks put them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from foh_pg.errors import InputError, one_line

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


@dataclass(frozen=True)
class Report:
    """What was found so far; `index` is what is looked at now, None where it is the whole database."""

    connection: psycopg.Connection[Any]
    findings: list[Finding] = field(default_factory=list)
    index: str | None = None

    def about(self, index: str) -> Report:
        """The same report, to be told of one index."""
        return replace(self, index=index)

    def error(self, check: str, found: str, cure: str) -> None:
        self.findings.append(Finding(check, ERROR, found, cure, self.index))

    def warn(self, check: str, found: str, cure: str) -> None:
        self.findings.append(Finding(check, WARNING, found, cure, self.index))

    def note(self, check: str, found: str, cure: str) -> None:
        self.findings.append(Finding(check, NOTE, found, cure, self.index))

    @contextmanager
    def guarded(self, check: str) -> Iterator[None]:
        """Around a check. One that fails is a finding, and must not keep the others from being made.

        A lost connection and wrong input end all of them.
        """
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            if self.connection.closed:
                raise
            name = "the index" if self.index else check
            self.warn(
                check,
                f"{name} could not be looked at: {one_line(error)}",
                "run foh-pg doctor as the owner of schema foh; the error says what is broken",
            )
