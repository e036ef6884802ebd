"""The record of one run: what it did, phase by phase, in foh.run and for those who watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from foh_pg.errors import one_line
from foh_pg.runs.session import Session

# Called with the name of a phase, how much of it is done, and of how much (0 where that is not known).
Progress = Callable[[str, int, int], None]


class Stopped(Exception):
    """The run was asked to end early."""


START = """
INSERT INTO foh.run (index, kind, from_version) VALUES ({id}, %(kind)s, %(version)s) RETURNING id
"""
UPDATE = """
UPDATE foh.run SET to_version = %(to_version)s, rows = %(rows)s, lists = %(lists)s,
       rows_encoded = %(rows_encoded)s, stale = %(stale)s, phases = %(phases)s, metrics = %(metrics)s,
       error = %(error)s,
       finished_at = CASE WHEN %(finished)s THEN pg_catalog.clock_timestamp() END
WHERE id = %(run)s
"""
# Runs of an index that are remembered: so many that have finished, as many that were killed, and as many
# evaluations. A watcher makes a thousand runs in hours, but quality is looked at over months.
REMEMBERED = 1000
FORGET = """
DELETE FROM foh.run WHERE index = {id} AND id = ANY (ARRAY(
    SELECT r.id FROM (
        SELECT o.id, pg_catalog.row_number() OVER (
            PARTITION BY o.finished_at IS NULL, o.kind = 'evaluate' ORDER BY o.id DESC) AS age
        FROM foh.run o WHERE o.index = {id}) r
    WHERE r.age > %(remembered)s))
"""


@dataclass
class Run:
    """One run of an updater on one index, between two versions; these are equal if there was nothing to do.

    `rows` are entries of the stream, or rows that a build read; `lists` and `rows_encoded` were encoded
    again; `stale` is the share of the stored bits estimated to differ from those of the present hash
    functions; `phases` are seconds by name; `more` says that entries are left that were there at the end.
    """

    index: str
    kind: str
    from_version: int
    to_version: int
    rows: int = 0
    lists: int = 0
    rows_encoded: int = 0
    stale: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    more: bool = False
    id: int | None = None
    progress: Progress | None = field(default=None, repr=False)
    _phase: str = field(default="", repr=False)
    # What each note is about, and the note.
    _notes: dict[str, str] = field(default_factory=dict, repr=False)

    @contextmanager
    def phase(self, name: str, total: int = 0) -> Iterator[None]:
        """Time what is done inside; phases do not nest."""
        self._phase = name
        self.step(0, total)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - started

    def step(self, done: int, total: int = 0) -> None:
        """Say how far the present phase is."""
        if self.progress is not None:
            self.progress(self._phase, done, total)

    def note(self, message: str, about: str = "") -> None:
        """Note what a person should know, in place of what was noted about the same; "" removes that."""
        self._notes.pop(about or message, None)
        if message:
            self._notes[about or message] = message

    @property
    def notes(self) -> list[str]:
        """What a person should know."""
        return [*self._notes.values()]

    # -- foh.run -------------------------------------------------------------------------------------------

    def begin(self, session: Session) -> None:
        """Write the row of this run, unless it is there already."""
        if self.id is None:
            session.execute(FORGET, {"remembered": REMEMBERED - 1})
            (self.id,) = session.one(START, {"kind": self.kind, "version": self.from_version})

    def save(self, session: Session, *, finished: bool = False) -> None:
        """Bring the row of this run up to date, inside a transaction of the caller's or in one of its own."""
        if self.id is None:
            return
        metrics = {**self.metrics, "notes": self.notes} if self.notes else self.metrics
        values = {
            "run": self.id,
            "to_version": self.to_version,
            "rows": self.rows,
            "lists": self.lists,
            "rows_encoded": self.rows_encoded,
            "stale": self.stale,
            "phases": Jsonb({name: round(seconds, 6) for name, seconds in self.phases.items()}),
            "metrics": Jsonb(metrics),
            "error": self.error,
            "finished": finished,
        }
        session.execute(UPDATE, values)

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        inside = ("id", "progress", "_phase", "_notes")
        said = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in inside}
        return {**said, "notes": self.notes}


@contextmanager
def recorded(session: Session, run: Run) -> Iterator[Run]:
    """Finish the row of a run, with the text of the error where one ends it."""
    try:
        yield run
    except BaseException as error:
        if isinstance(error, Stopped):
            # This is no error: what was not done is still in the stream.
            run.note(str(error) or "asked to end early")
        else:
            run.error = one_line(error)
        if not session.connection.closed and not session.connection.broken:
            try:
                session.connection.rollback()
                run.save(session, finished=True)
            except psycopg.Error:
                pass  # the first error says more
        raise
    run.save(session, finished=True)
