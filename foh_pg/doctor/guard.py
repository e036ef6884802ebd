"""A check that fails is a finding: it must not keep the others from being made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import psycopg

from foh_pg.doctor.finding import WARNING, Finding
from foh_pg.errors import InputError, one_line


def guarded(
    connection: psycopg.Connection[Any],
    check: str,
    look: Callable[[], Iterable[Finding]],
    index: str | None = None,
) -> list[Finding]:
    """What `look` finds, and the error where one ends it. A lost connection and wrong input are raised."""
    found: list[Finding] = []
    try:
        found.extend(look())
    except InputError:
        raise
    except Exception as error:
        if connection.closed:
            raise
        name = "the index" if index else check
        found.append(
            Finding(
                check,
                WARNING,
                f"{name} could not be looked at: {one_line(error)}",
                "run foh-pg doctor as the owner of schema foh; the error says what is broken",
                index,
            )
        )
    return found
