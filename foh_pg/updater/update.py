"""`foh-pg update`: from the stream to better hash functions and up-to-date lists."""

from __future__ import annotations

import time

from foh_pg.errors import BuildError
from foh_pg.tables.index_row import IndexRow, find_index, read_index
from foh_pg.tables.run import Progress, Run, recorded
from foh_pg.tables.session import Session, Target, open_session
from foh_pg.updater.follow import follow
from foh_pg.updater.handover import load_handover, shape_of
from foh_pg.updater.pull import pull
from foh_pg.updater.unfinished import discard_plan
from foh_pg.updater.work import Work

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

    Parameters
    ----------
    target : str, connection or None
        A DSN, an idle connection, or None for what libpq's environment variables say.
    index : str
        Name of the index.
    batch_size : int
        Entries of the stream per transaction.
    max_seconds : float, optional
        No batch is begun after that; `Run.more` says whether entries are left.
    full : bool
        Encode everything again from the source, and choose new centers.
    progress : callable, optional
        Called with phase, done and total.
    """
    if batch_size < 1:
        raise BuildError(f"batch_size is {batch_size}, it must be at least 1")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
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
            _update(session, run, found, batch_size, deadline, full)
        return run


def drain(session: Session, run: Run) -> None:
    """Merge what was written while a filling was at work: those entries name centers that are gone."""
    index = read_index(session)
    pull(session, run)
    if int(index.options["neighbors"]) == 0 and not session.one(RESYNC)[0]:
        _update(session, run, index, BATCH_SIZE, None, full=False)


def _update(
    session: Session, run: Run, index: IndexRow, batch_size: int, deadline: float | None, full: bool
) -> None:
    work: Work | None = None
    shape = load_handover(session, index).shape
    if shape not in ("", shape_of(index)):
        run.note("homes, neighbors or label_weight of the index were changed: everything is encoded again")
        full = True
    pull(session, run)
    follow(session, run)
    last = session.of_primary(LAST)
    while full or session.of_primary(WAITING, {"last": last}):
        run.more = not full
        if deadline is not None and time.monotonic() >= deadline:
            return
        run.begin(session)
        if work is None:
            (run.metrics["lag_seconds"],) = session.one(LAG)
            work = Work.load(session, run)
        # Which rows are nearest to a center can only be told from all rows.
        full = full or int(index.options["neighbors"]) > 0
        if not full:
            work.step(batch_size)
        if full or work.resync:
            work.fill_all(batch_size)
            run.more = False
            drain(session, run)
            return
        run.more = False
