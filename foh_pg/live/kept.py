"""A page that many look at and that is read from the database once in a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import psycopg

from foh_pg.errors import FohError, one_line

log = logging.getLogger(__name__)

Value = TypeVar("Value")

# At least so many seconds lie between two readings, which take up at most this share of the time.
PERIOD = 5.0
SHARE = 0.05
# Seconds that the first visitors wait for the first reading.
PATIENCE = 15.0


@dataclass(frozen=True)
class Shown(Generic[Value]):
    """What was read last, if anything, and why it could not be read again, if that is so."""

    value: Value | None
    error: str = ""


class Kept(Generic[Value]):
    """What `read` gives, at most `period` seconds old as long as somebody asks.

    One of those who ask reads; the others get what there is meanwhile. However long a reading takes, readings
    take up `SHARE` of the time at the most. While they fail, the last value stays, with the error.

    `read`: reads from the database; an error is shown on the page.
    """

    def __init__(
        self, read: Callable[[], Value], period: float = PERIOD, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._period = period
        self._clock = clock
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._reading = False
        self._due = float("-inf")
        self._shown: Shown[Value] = Shown(None, "the database has not answered yet")

    def get(self) -> Shown[Value]:
        with self._lock:
            mine = not self._reading and self._clock() >= self._due
            self._reading |= mine
        if mine:
            self._renew()
        else:
            self._first.wait(PATIENCE)
        return self._shown

    def _renew(self) -> None:
        began = self._clock()
        try:
            self._shown = Shown(self._read())
        except Exception as error:
            if not isinstance(error, (FohError, psycopg.Error)):
                log.exception("a page could not be made")
            self._shown = Shown(self._shown.value, one_line(error))
        finally:
            ended = self._clock()
            with self._lock:
                self._due = ended + max(self._period, (ended - began) / SHARE)
                self._reading = False
            self._first.set()
