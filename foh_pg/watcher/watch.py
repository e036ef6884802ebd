"""`foh-pg watch`: look at the streams again and again, and update what has something waiting."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from foh_pg.errors import BusyError, FohError, IndexNotFound, SchemaError, one_line
from foh_pg.runs.run import Progress, Run, Stopped
from foh_pg.updater.update import BATCH_SIZE, update
from foh_pg.version import __version__
from foh_pg.watcher.counters import MEASURES, Counters
from foh_pg.watcher.poll import Stream, poll

log = logging.getLogger(__name__)

Connection = psycopg.Connection[Any]
# Measures the index of this name; reports every step, which may raise Stopped.
Evaluate = Callable[[Connection, str, Progress], Run]

# A watcher that has not looked at the streams for so many seconds is not healthy, unless a run is under way.
SILENCE = 60.0


@dataclass(frozen=True)
class Settings:
    """How to watch."""

    # Indexes to watch; none of them means all, also those created later.
    names: tuple[str, ...] = ()
    # Seconds between two looks at the streams.
    interval: float = 5.0
    # Entries of the stream per transaction.
    batch_size: int = BATCH_SIZE
    # Begin no further batch of an index after that, so that the others have their turn.
    max_seconds: float = 60.0
    # Seconds between two evaluations of an index; None for never. An evaluation reads the whole table.
    evaluate_every: float | None = None
    # Seconds to wait after an error at the most, of several that follow each other.
    longest_wait: float = 300.0
    # Asked to stop, cancel a statement that takes longer than that, such as one that waits for a lock.
    grace: float = 15.0


@dataclass
class Watched:
    """One index, as the watcher knows it from look to look. Times are those of the monotonic clock."""

    # Errors of runs that follow each other: how many, the last one, and when to try again.
    failures: int = 0
    error: str = ""
    until: float = 0.0
    # What cannot be read of the index, and so not be updated.
    problem: str = ""
    # Whether the log says that the index is skipped.
    skipped: bool = False
    # When an evaluation was last tried.
    tried: float = -math.inf


@dataclass
class Watcher:
    """Keeps indexes up to date until it is asked to stop.

    `connect`: gives a new connection in autocommit mode; called again when the old one is lost. `evaluate`:
    measures an index and records the figures; called if the settings say how often.
    """

    connect: Callable[[], Connection]
    settings: Settings
    evaluate: Evaluate | None = None
    counters: Counters = field(default_factory=Counters)
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    _connection: Connection | None = None
    _indexes: dict[str, Watched] = field(default_factory=dict)
    _working: bool = False
    _polled: float = field(default_factory=time.monotonic)
    _failures: int = 0
    _last_error: str = ""

    def __post_init__(self) -> None:
        self.counters.set("foh_info", 1, version=__version__)
        # A rate needs a first value.
        self.counters.add("foh_connection_errors_total", 0)

    def stop(self) -> None:
        """End soon: finish a switch that has begun, roll back anything else. Safe in a signal handler."""
        self.stopping.set()

    def run(self) -> None:
        """Watch until `stop` is called.

        Raises
        ------
        IndexNotFound, SchemaError
            At the first look only; later ones are waited out like all other errors.
        """
        first = True
        threading.Thread(target=self._cancel, name="cancel", daemon=True).start()
        try:
            while not self.stopping.is_set():
                try:
                    wait = self._round()
                    self._failures, self._last_error, first = 0, "", False
                except Stopped:
                    break
                except Exception as error:
                    if first and isinstance(error, (IndexNotFound, SchemaError)):
                        raise
                    wait = self._lost(error)
                self.stopping.wait(wait)
        finally:
            self._disconnect()
            self.ended.set()

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the watcher is well, and why not: one that is not well should be restarted."""
        silence = time.monotonic() - self._polled
        well = self._working or silence < max(SILENCE, 3 * self.settings.interval)
        said: dict[str, Any] = {
            "status": "ok" if well else "failing",
            "seconds_since_poll": round(silence, 1),
        }
        if self.stopping.is_set():
            said["stopping"] = True
        if self._last_error:
            said["error"] = self._last_error
        indexes = self._indexes.copy().items()
        said["indexes"] = {name: watched.problem or watched.error or "ok" for name, watched in indexes}
        return well, said

    # -- one look ------------------------------------------------------------------------------------------

    def _round(self) -> float:
        """Look at all streams and update where something waits; give the seconds until the next look."""
        more = False
        for stream in self._poll():
            if self.stopping.is_set():
                break
            watched = self._indexes[stream.name]
            if stream.status == "ready" and stream.waits and time.monotonic() >= watched.until:
                more |= self._update(stream.name, watched)
            # Updates come first: an evaluation waits until no stream has entries left.
            if not more and self._evaluation_due(stream, watched):
                self._evaluate(stream.name, watched)
        return 0.0 if more else self.settings.interval

    def _poll(self) -> list[Stream]:
        found = poll(self._connected(), self.settings.names)
        self._polled = time.monotonic()
        self.counters.set("foh_last_poll_timestamp_seconds", time.time())
        missing = set(self.settings.names) - {stream.name for stream in found}
        if missing:
            raise IndexNotFound.named(min(missing))
        self._meet({stream.name for stream in found})
        for stream in found:
            watched = self._indexes[stream.name]
            self._show(stream, watched)
            if stream.status != "ready" and not watched.skipped:
                watched.skipped = True
                log.warning("index %r is not built yet: run foh-pg build %s", stream.name, stream.name)
        return found

    def _show(self, stream: Stream, watched: Watched) -> None:
        """Bring the gauges of one index up to date; what is wrong with it is told once."""
        try:
            stream.show(self.counters)
            problem = stream.problem or ""
        except Exception as error:
            problem = f"what the database says of it cannot be shown: {one_line(error)}"
        if problem and problem != watched.problem:
            log.error("index %r: %s; foh-pg doctor says what helps", stream.name, problem)
        watched.problem = problem

    def _meet(self, present: set[str]) -> None:
        """Begin to count for indexes that are new, forget those that are gone."""
        for name in present - self._indexes.keys():
            self.counters.start(name)
            self._indexes[name] = Watched()
        for name in self._indexes.keys() - present:
            self.counters.forget(name)
            del self._indexes[name]

    # -- one index -----------------------------------------------------------------------------------------

    def _update(self, name: str, watched: Watched) -> bool:
        """Update one index; whether entries are left that can be taken at once."""
        connection, started = self._connected(), time.monotonic()
        size, most = self.settings.batch_size, self.settings.max_seconds
        try:
            with self._at_work(name):
                run = update(connection, name, batch_size=size, max_seconds=most, progress=self._heed)
        except Stopped:
            raise
        except BusyError as error:
            self.counters.add("foh_runs_skipped_total", index=name)
            if not watched.skipped:
                watched.skipped = True
                log.info("skipped: %s", error)
            return False
        except Exception as error:
            self.counters.add("foh_run_errors_total", index=name)
            if connection.closed:
                raise
            watched.failures += 1
            wait = pause(watched.failures, self.settings.longest_wait)
            watched.error, watched.until = one_line(error), time.monotonic() + wait
            log.error(
                "index %r: %s; trying again in %.0f s", name, watched.error, wait, exc_info=fault(error)
            )
            return False
        watched.skipped, watched.error, watched.failures = False, "", 0
        self._tell(run, time.monotonic() - started)
        return run.more

    @contextmanager
    def _at_work(self, name: str) -> Iterator[None]:
        """Around a run: that the watcher was asked to stop is no error of the run."""
        self._working = True
        try:
            yield
        except Stopped:
            log.info("index %r: stopped; nothing is lost", name)
            raise
        except psycopg.errors.QueryCanceled as error:
            if not self.stopping.is_set():
                raise
            log.info("index %r: canceled and rolled back; nothing is lost", name)
            raise Stopped(str(error)) from error
        finally:
            self._working = False
            self._polled = time.monotonic()

    def _evaluation_due(self, stream: Stream, watched: Watched) -> bool:
        """Whether the last evaluation, by any process, and our last attempt are long enough ago."""
        every = self.settings.evaluate_every
        if every is None or stream.status != "ready" or stream.problem is not None or not stream.rows:
            return False
        return min(time.time() - stream.evaluated_at, time.monotonic() - watched.tried) >= every

    def _evaluate(self, name: str, watched: Watched) -> None:
        """Measure one index. An error is told and costs one point of its chart, no more."""
        assert self.evaluate is not None
        connection, watched.tried = self._connected(), time.monotonic()
        try:
            with self._at_work(name):
                run = self.evaluate(connection, name, self._heed)
        except Stopped:
            raise
        except Exception as error:
            if connection.closed:
                raise
            log.error("index %r could not be evaluated: %s", name, one_line(error), exc_info=fault(error))
            return
        found = run.metrics["index"]
        figures = " ".join(f"{key}={found[key]:.3f}" for key in MEASURES if found.get(key) is not None)
        log.info("index %r: evaluated version %d, %s", name, run.to_version, figures)

    def _heed(self, phase: str, done: int, total: int) -> None:
        """Called at every step of a run. A switch is short and nearly done, so it is not interrupted."""
        if self.stopping.is_set() and phase != "switch":
            raise Stopped("asked to stop; what was not done is still in the stream")

    def _cancel(self) -> None:
        """Asked to stop, wait a while and then cancel whatever the server still does for us."""
        self.stopping.wait()
        wait = self.settings.grace
        while not self.ended.wait(wait):
            connection, wait = self._connection, 1.0
            if connection is not None and not connection.closed:
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=5)

    def _tell(self, run: Run, seconds: float) -> None:
        self.counters.add("foh_runs_total", index=run.index)
        self.counters.count(run)
        self.counters.set("foh_last_run_timestamp_seconds", time.time(), index=run.index)
        phases = " ".join(f"{name.replace(' ', '_')}={spent:.2f}" for name, spent in run.phases.items())
        log.info(
            "index %r: version %d, rows=%d lists=%d rows_encoded=%d stale=%s seconds=%.2f %s%s",
            run.index,
            run.to_version,
            run.rows,
            run.lists,
            run.rows_encoded,
            "-" if run.stale is None else f"{run.stale:.4f}",
            seconds,
            phases,
            "".join(f"; {note}" for note in run.notes),
        )

    # -- the connection ------------------------------------------------------------------------------------

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self.connect()
            if self._last_error:
                log.info("connected again")
        self.counters.set("foh_connected", 1)
        return self._connection

    def _lost(self, error: Exception) -> float:
        """Count an error that concerns all indexes, give the connection up, and say how long to wait."""
        self._last_error = one_line(error)
        self.counters.add("foh_connection_errors_total")
        self._disconnect()
        self._failures += 1
        wait = pause(self._failures, self.settings.longest_wait)
        log.error("%s; trying again in %.0f s", self._last_error, wait, exc_info=fault(error))
        return wait

    def _disconnect(self) -> None:
        self.counters.set("foh_connected", 0)
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def pause(failures: int, longest: float) -> float:
    """Seconds to wait after so many errors: up to one, then twice as long each time up to `longest`.

    Drawn from the upper half of its range: watchers that lost their server at one moment must not come back
    at one moment.
    """
    # 2.0 ** 2000 would be an error, and the longest wait is reached long before.
    return min(longest, 2.0 ** min(failures - 1, 60)) * random.uniform(0.5, 1)


def fault(error: Exception) -> Exception | None:
    """An error that is a fault of ours, for the log to have its traceback."""
    return None if isinstance(error, (FohError, psycopg.Error)) else error
