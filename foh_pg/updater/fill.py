"""Filling an index from its source: every row encoded and placed once, beside what is served, then switched.

Lists of a filling belong to centers that no search knows yet, so they can be written and committed piece by
piece. An interrupted filling goes on where it was: see `unfinished`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foh_pg.errors import FenceError
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import fill_samples
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.lists import write_parts
from foh_pg.tables.parts import Entries, entries_of, join_entries, new_parts, no_entries
from foh_pg.tables.source import Rows, read_page
from foh_pg.updater.gathering import Gathered
from foh_pg.updater.install import Change
from foh_pg.updater.placing import held_of
from foh_pg.updater.served_model import Placed, Served
from foh_pg.updater.unfinished import ORPHANS, Plan, Position, save_plan, save_position
from foh_pg.updater.weighing import with_ranking

# Rows read and encoded at a time: this many bytes of vectors, and never more rows than that.
PAGE_BYTES = 64 << 20
PAGE_ROWS = 50_000
LEAST_PAGE_ROWS = 1000

# Entries written in one piece. Every piece adds a part to each list that it touches, so pieces are large.
PIECE_ROWS = 500_000

RESERVE = """
UPDATE foh.index SET next_center = %(next_center)s
WHERE id = {id} AND version = %(version)s AND next_center = %(first)s
"""


def fill(
    session: Session,
    run: Run,
    index: IndexRow,
    plan: Plan,
    asking: Gathered | None = None,
    position: Position | None = None,
) -> Change:
    """Place every row of the source; return the change that switches to what was made.

    All rows are offered to the queries of `asking`, by which the ranking is chosen at the end.
    """
    if position is None:
        position = Position.start(plan)
        with run.phase("plan"):
            _begin(session, index, plan)
    with run.phase("place", plan.rows):
        _place(session, run, index, plan, asking, position)
    run.rows_encoded += position.done
    # An update that fills counts what it takes from the stream, like any other.
    run.rows += len(plan.consumed) if run.kind == "update" else position.done
    run.lists = int(np.count_nonzero(position.lengths))
    run.stale = 0.0
    if asking is not None:
        plan = replace(plan, model=with_ranking(run, plan.model, asking, plan.rows))
    return _change(index, plan, position)


def _begin(session: Session, index: IndexRow, plan: Plan) -> None:
    """Reserve the ids of the centers and write the plan down."""
    with session.write():
        values = {
            "first": index.next_center,
            "next_center": index.next_center + len(plan.centers),
            "version": index.version,
        }
        if session.execute(RESERVE, values) != 1:
            raise FenceError(f"index {index.name!r} was changed by another updater: run the command again")
        session.execute(ORPHANS)
        save_plan(session, index, plan)


def _place(
    session: Session, run: Run, index: IndexRow, plan: Plan, asking: Gathered | None, position: Position
) -> None:
    size = max(LEAST_PAGE_ROWS, min(PAGE_ROWS, PAGE_BYTES // (4 * index.dimensions)))
    pieces: list[Entries] = []
    more = True
    while more:
        # Each page has a snapshot of its own: a row changed since the plan was made has an entry in the
        # stream that the plan does not consume, and that entry wins.
        with session.snapshot():
            page = read_page(session, index, position.after, size)
        pieces.append(_place_page(index, plan, asking, page.rows))
        position.after, more = page.after, page.more
        position.far = np.concatenate([position.far, page.far])
        position.done += len(page.rows)
        run.step(position.done, plan.rows)
        if not more or sum(map(len, pieces)) >= PIECE_ROWS:
            _write_piece(session, index, plan, position, join_entries(index, pieces))
            pieces = []


def _place_page(index: IndexRow, plan: Plan, asking: Gathered | None, page: Rows) -> Entries:
    """Encode rows and find their homes; the centers of the entries are positions."""
    # Without centers the table was empty when the plan was made: rows that have come since are in the stream.
    if len(page) == 0 or len(plan.centers) == 0:
        return no_entries(index)
    held = held_of(plan.model, page)
    homes = plan.centers.homes(held["geometry"], index.layout, quick=True)
    if asking is not None:
        # Where few rows never train, another model is asked: see hold_out_enough.
        asked = held if asking.model is plan.model else held_of(asking.model, page)
        asking.offer(page, asked, homes)
    return entries_of(page.keys, held, homes)


def _write_piece(session: Session, index: IndexRow, plan: Plan, position: Position, entries: Entries) -> None:
    ordered = new_parts(index, entries, position.parts)
    counts = np.bincount(entries.centers, minlength=len(plan.centers))
    position.lengths = position.lengths + counts
    np.maximum.at(position.parts, ordered.centers, ordered.parts + 1)
    _sample(plan, position, entries)
    named = ordered.moved(plan.centers.ids[ordered.centers], ordered.parts)
    with session.write():
        write_parts(session, index, named)
        save_position(session, index, position)


def _sample(plan: Plan, position: Position, entries: Entries) -> None:
    """Fill up the samples of members by which later runs see how stale a list is."""
    position.sampled = fill_samples(
        np.random.default_rng([plan.version, position.done]),
        position.sampled,
        position.sample_keys,
        position.sample_codes,
        entries.centers,
        entries.keys,
        plan.model.codes_of(entries.marks),
    )


def _change(index: IndexRow, plan: Plan, position: Position) -> Change:
    """The lists are written: only centers, items and the model are left to be changed."""
    version = plan.version + 1
    first = int(plan.centers.ids[0]) if len(plan.centers) else index.next_center
    return Change(
        index=index,
        after=plan.centers.with_(
            lengths=position.lengths,
            sample_keys=position.sample_keys,
            sample_codes=position.sample_codes,
            sampled=position.sampled,
        ),
        merged=None,
        served=Served(plan.model, version, False, Placed(version, first), position.far),
        learner=plan.learner,
        handover=plan.handover,
        consumed=plan.consumed,
        metrics=plan.metrics,
    )
