"""How long to wait after errors that follow each other."""

from __future__ import annotations

import random


class Backoff:
    """Waits that double up to a cap, each drawn from the upper half of its range.

    The draw keeps watchers that lost their server at one moment from all coming back at one moment.

    The first wait is up to a second; `cap`: seconds at the most.

    >>> backoff = Backoff(60, random.Random(0))
    >>> [round(backoff.fail()) for _ in range(8)]
    [1, 2, 3, 5, 12, 22, 57, 39]
    >>> backoff.succeed()
    >>> backoff.fail() <= 1
    True
    """

    def __init__(self, cap: float, source: random.Random | None = None) -> None:
        self.cap = cap
        self.failures = 0
        self._random = source or random.Random()

    def fail(self) -> float:
        """Count one more failure; give the seconds to wait."""
        # 2.0 ** 2000 would be an error, and the cap is reached long before.
        whole = min(self.cap, 2.0 ** min(self.failures, 60))
        self.failures += 1
        return whole * (0.5 + 0.5 * self._random.random())

    def succeed(self) -> None:
        self.failures = 0
