"""A batch of the stream and the rows that it names, read in one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from foh_pg.postgres.binary_copy import INT8
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.items import Items, no_items, read_items
from foh_pg.tables.keys import KeyArray, member
from foh_pg.tables.source import Rows, join_rows, no_rows, read_by_key, read_with_far
from foh_pg.updater import training
from foh_pg.updater.handover import PENDING, Handover
from foh_pg.updater.index_state import State

MARKERS = """
SELECT max(t.seq) FILTER (WHERE t.op = 't'), max(t.seq) FROM {stream} t
WHERE t.op IN ('t', 'r') AND NOT t.fresh
"""
BEFORE = "SELECT t.seq FROM {stream} t WHERE t.seq <= %(seq)s"
# An entry of a row that is gone, deleted or lost with its partition, has no vector to be read. What it costs
# is to write its list again, once for all rows that leave the list. So a batch takes many more of them.
GONE_TIMES = 20
# But not so many that more than about this many members of lists must be held at once.
MEMBERS = 500_000
# Up to the entry that is one too many of those with a row, and up to a number of entries.
# The third column says whether the row is read for this entry, the last one whether there may be a row: there
# is none where a partition took it along (version -1). An entry of labels (op l) or of a deletion is left to
# a later entry of the same key, which covers it. If the row were placed for the first of the two, and the
# later one is marked as the first of its key, searches would find the row twice: in a list and in the stream.
ENTRIES = """
SELECT e.seq, e.key, (e.op = 'u' OR NOT EXISTS (
           SELECT FROM {stream} o
           WHERE o.key = e.key AND {later} > e.seq AND o.op <> 'l' OFFSET 0))::int::bigint,
       (e.op <> 'd' AND e.version >= 0)::int::bigint
FROM (SELECT t.seq, t.key, t.op, t.version FROM {stream} t
      WHERE t.op IN ('u', 'd', 'l') AND t.seq > %(after)s AND t.seq <= coalesce((
          SELECT p.seq FROM {stream} p WHERE p.op IN ('u', 'l') AND p.version >= 0 AND p.seq > %(after)s
          ORDER BY p.seq OFFSET %(size)s LIMIT 1), 9223372036854775807)
      ORDER BY t.seq LIMIT %(most)s) e
ORDER BY e.seq
"""


@dataclass(frozen=True)
class Batch:
    """What was read in one snapshot."""

    index: IndexRow
    # The entries read: what an installation of this batch consumes.
    seqs: npt.NDArray[np.int64]
    # Their keys, each once.
    keys: KeyArray
    # Those of the keys that are there, with a usable embedding that is not far.
    rows: Rows
    # Those of the keys whose rows are far.
    far: KeyArray
    # The lists that the keys are in.
    items: Items
    # Earlier rows that wait to be learned from; read only where `due`.
    pending: Rows
    # Recent rows that never train; read only where `due`.
    examined: Rows
    # There are enough new labelled rows for a stage.
    due: bool = False
    # The stream has further entries.
    more: bool = False
    # So many entries with a row were wanted at most.
    size: int = 0
    # The table was emptied: `seqs` are all entries up to the TRUNCATE, and the lists are void.
    truncated: bool = False
    # The whole source must be read again.
    resync: bool = False

    @property
    def gone(self) -> KeyArray:
        """Keys whose row is not there any more, or belongs in no list."""
        return self.keys[~member(self.keys, self.rows.keys)]


def read_batch(
    session: Session, run: Run, state: State, size: int, after: int | None = None
) -> tuple[State, Batch]:
    """Read up to `size` entries, the oldest first, and their rows; return also the state of that snapshot.

    `after`: read only entries after this one, for learning alone: markers are not looked for.
    """
    with run.phase("read"), session.snapshot():
        present = state.present(session)
        return present, _read(session, present, size, after)


def _read(session: Session, state: State, size: int, after: int | None) -> Batch:
    index = state.index
    truncated, marker = (None, None) if after is not None else session.one(MARKERS)
    if truncated is not None:
        (before,) = session.read_all(BEFORE, [INT8], {"seq": truncated})
        return replace(_empty(index), seqs=before, truncated=True, more=True)
    batch = replace(_empty(index), resync=marker is not None, size=size)
    most = max(size, min(GONE_TIMES * size, _gone_at_once(state)))
    values = {"size": size, "most": most + 1, "after": after or 0}
    seqs, told, reads, rowed = session.read_all(ENTRIES, [INT8, index.keys.column, INT8, INT8], values)
    if len(seqs) == 0:
        return batch
    count = int(np.count_nonzero(np.cumsum(rowed)[:most] <= size))
    keys = np.unique(index.keys.read(told)[:count][reads[:count] == 1])
    rows, far = read_with_far(session, index, keys)
    batch = replace(batch, seqs=seqs[:count], more=len(seqs) > count, keys=keys, rows=rows, far=far)
    batch = replace(batch, items=read_items(session, index, keys))
    return _with_past(session, state, batch)


def _gone_at_once(state: State) -> int:
    """How many rows may leave their lists in one batch, where each may be in another list."""
    return MEMBERS if state.rows <= MEMBERS else MEMBERS * len(state.centers) // state.rows


def _with_past(session: Session, state: State, batch: Batch) -> Batch:
    """The batch with earlier rows to learn from, where a stage is due."""
    index, handover = state.index, state.handover
    fresh = np.count_nonzero(_counts(index, batch.rows))
    if not state.learns or fresh + handover.waiting < int(index.options["learn_rows"]):
        return batch
    waiting = handover.pending[~member(handover.pending, batch.keys)]
    return replace(
        batch,
        due=True,
        pending=read_by_key(session, index, waiting),
        examined=read_by_key(session, index, handover.held_out),
    )


def with_rows(session: Session, batch: Batch, rows: Rows) -> Batch:
    """The batch with further rows, which leave their lists and are placed again."""
    index = batch.index
    further = rows.take(~member(rows.keys, batch.keys))
    if len(further) == 0:
        return batch
    keys = np.concatenate([batch.keys, further.keys])
    with session.snapshot():
        items = read_items(session, index, keys)
    return replace(batch, keys=keys, rows=join_rows(index, [batch.rows, further]), items=items)


def _counts(index: IndexRow, rows: Rows) -> npt.NDArray[np.bool_]:
    """Which rows count towards a stage: those with labels, or all if the index has no labels."""
    return rows.labels.lengths > 0 if index.labels is not None else np.ones(len(rows), dtype=bool)


def _empty(index: IndexRow) -> Batch:
    none, rows, keys = np.zeros(0, dtype=np.int64), no_rows(index), index.keys.empty()
    return Batch(index, none, keys, rows, keys, no_items(index), rows, rows)


def handover_after(
    batch: Batch, before: Handover, *, learns: bool, studied: bool = False, forgot: bool = False
) -> Handover:
    """What the next run must know once this batch is installed.

    `studied` says that the learner has learned from what was pending, `forgot` that it has let go of all keys
    that were deleted or changed. Where nothing is learned any more (`learns` is false), no row waits for it.
    """
    studied, forgot = studied or not learns, forgot or not learns
    index, rows = batch.index, batch.rows
    held = training.held_out(index, rows)
    labelled = _counts(index, rows)
    kept = before.held_out[~member(before.held_out, batch.keys)]
    again = member(before.pending, batch.keys)
    pending = np.concatenate([before.pending[~again], rows.keys[labelled]])
    waiting = before.waiting - int(np.count_nonzero(again)) + int(np.count_nonzero(labelled))
    changed = batch.items.keys
    return Handover(
        before.rows_seen + len(rows),
        0 if studied else waiting,
        index.keys.empty() if studied else pending[-PENDING:],
        np.concatenate([kept, rows.keys[held & labelled]]),
        index.keys.empty() if forgot else np.unique(np.concatenate([before.forgotten, changed])),
        before.replaced,
    )
