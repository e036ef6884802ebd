"""`foh-pg update`: from the stream to better hash functions and up-to-date lists."""

from __future__ import annotations

import time
from dataclasses import dataclass

from foh_pg.errors import BuildError
from foh_pg.runs.run import Progress, Run, recorded
from foh_pg.runs.session import Session, Target, open_session
from foh_pg.tables.index_row import find_index, read_index
from foh_pg.updater.batch import read_batch
from foh_pg.updater.follow import follow
from foh_pg.updater.handover import Handover, load_handover
from foh_pg.updater.index_state import State, load
from foh_pg.updater.install import install
from foh_pg.updater.learn import learn, weigh_again
from foh_pg.updater.merge import merge
from foh_pg.updater.pull import pull
from foh_pg.updater.refill import empty, must_refill, refill
from foh_pg.updater.unfinished import discard_plan

BATCH_SIZE = 2000

RESYNC = "SELECT EXISTS (SELECT FROM {stream} t WHERE t.op = 'r' AND NOT t.fresh)"
# A run takes only entries that it finds when it begins: rows that keep coming would keep it busy for ever.
LAST = "SELECT pg_catalog.pg_is_in_recovery(), max(t.seq) FROM {stream} t"
WAITING = """
SELECT pg_catalog.pg_is_in_recovery(), EXISTS (SELECT FROM {stream} t WHERE t.seq <= %(last)s::bigint)
"""
# How long the oldest entry has waited; null where there is none.
LAG = """
SELECT extract(epoch FROM pg_catalog.clock_timestamp() - (
    SELECT t.written_at FROM {stream} t ORDER BY t.seq LIMIT 1))::float8
"""
WEIGHED_OTHERWISE = "option label_weight of the index was changed: every row is encoded again"
PLANNED = "SELECT EXISTS (SELECT FROM foh.model_state WHERE index = {id} AND version = 0 AND name = 'plan')"


def update(
    target: Target,
    index: str,
    *,
    batch_size: int = BATCH_SIZE,
    max_seconds: float | None = None,
    full: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Merge the stream of an index into its lists, batch by batch, and learn from it on the way.

    `target` is a DSN, an idle connection, or None for what libpq's environment variables say. After
    `max_seconds` no batch is begun; `Run.more` says whether entries are left. With `full` everything is read
    and encoded again, and centers are chosen again.
    """
    if batch_size < 1:
        raise BuildError(f"batch_size is {batch_size}, it must be at least 1")
    limits = Limits(batch_size, None if max_seconds is None else time.monotonic() + max_seconds)
    with open_session(target) as session:
        found = find_index(session, index)
        session.lock(found.id, found.name)
        found = read_index(session)
        if found.status != "ready":
            raise BuildError(f"index {index!r} is not built yet: run foh-pg build {session.names['name']}")
        run = Run(found.name, "update", found.version, found.version, progress=progress)
        with recorded(session, run):
            if session.one(PLANNED)[0]:
                run.note("discarded a build that was interrupted")
                discard_plan(session)
            handover = load_handover(session, found)
            if handover.weighed_otherwise(found):
                run.note(WEIGHED_OTHERWISE)
                full = True
            if not found.filled:
                run.note("the index includes further columns: all lists are filled again")
                full = True
            take_in(session, run, handover, end_of_stream(session, run), limits, full)
        return run


@dataclass(frozen=True)
class Limits:
    """How much an updater takes in at a time, and when it begins no further batch."""

    batch_size: int = BATCH_SIZE
    deadline: float | None = None

    @property
    def over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


def take_in(
    session: Session, run: Run, handover: Handover, last: int | None, limits: Limits, full: bool = False
) -> None:
    """Take the stream in, batch by batch, up to the entry `last`; with `full`, place all rows again first."""
    state: State | None = None
    while full or session.of_primary(WAITING, {"last": last}):
        run.more = not full
        if limits.over:
            return
        if run.id is None:
            run.begin(session)
            (run.metrics["lag_seconds"],) = session.one(LAG)
        state = state or load(session, run, handover)
        state, batch = read_batch(session, run, state, limits.batch_size)
        learned = learn(session, run, state, batch)
        make = empty if batch.truncated else refill if full or must_refill(state, batch) else merge
        if make is merge:
            learned = weigh_again(session, run, state, batch, learned)
        change = make(session, run, state, batch, learned)
        install(session, run, change)
        state, run.more = state.after(change), False
        if make is refill:
            full, last = False, written_meanwhile(session, run)


def end_of_stream(session: Session, run: Run) -> int | None:
    """The last entry that a run takes in; None where there is none."""
    pull(session, run)
    follow(session, run)
    last: int | None = session.of_primary(LAST)
    return last


def written_meanwhile(session: Session, run: Run) -> int | None:
    """The last entry that was written while a filling was at work: such entries name centers that are gone.

    None where these entries must wait for the next run, since all rows would have to be read once more.
    """
    pull(session, run)
    if session.one(RESYNC)[0]:
        return None
    return end_of_stream(session, run)
