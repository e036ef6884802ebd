"""To wait for a fact: how long says nothing about what is tested, only about the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

# Far longer than anything takes on a busy machine: a test that waits in vain has failed, and this only ends it.
PATIENCE = 300.0


def until(fact: Callable[[], bool], what: str | Callable[[], str], pause: float = 0.02) -> None:
    """Ask again and again whether something is so; `what` is said where it never is."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, f"waited in vain: {what if isinstance(what, str) else what()}"
        time.sleep(pause)
