"""A batch of the stream and the rows that it names, read in one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from foh_pg.postgres.binary_copy import INT8
from foh_pg.tables.index_row import IndexRow, read_index
from foh_pg.tables.items import Items, read_items
from foh_pg.tables.keys import KeyArray, member
from foh_pg.tables.session import Session
from foh_pg.tables.source import Rows, join_rows, no_rows, read_by_key, read_with_far
from foh_pg.updater import training
from foh_pg.updater.handover import PENDING, Handover

MARKERS = """
SELECT max(t.seq) FILTER (WHERE t.op = 't'), max(t.seq) FROM {stream} t
WHERE t.op IN ('t', 'r') AND NOT t.fresh
"""
BEFORE = "SELECT t.seq FROM {stream} t WHERE t.seq <= %(seq)s"
# The last column says whether the row is read for this entry. An entry of labels (op l) is left to a later
# entry of the same key, which covers the labels too. If the row were placed for the first of the two, and the
# later one is marked as the first of its key, searches would find the row twice: in a list and in the stream.
ENTRIES = """
SELECT e.seq, e.key, (e.op <> 'l' OR NOT EXISTS (
    SELECT FROM {stream} o WHERE o.key = e.key AND {later} > e.seq AND o.op <> 'l' OFFSET 0))::int::bigint
FROM (SELECT t.seq, t.key, t.op FROM {stream} t WHERE t.op IN ('u', 'd', 'l') AND t.seq > %(after)s
      ORDER BY t.seq LIMIT %(size)s) e
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
    # The table was emptied: `seqs` are all entries up to the TRUNCATE, and the lists are void.
    truncated: bool
    # The whole source must be read again.
    resync: bool
    # Earlier rows that wait to be learned from; read only where `due`.
    pending: Rows
    # Recent rows that never train; read only where `due`.
    examined: Rows
    # There are enough new labelled rows for a stage.
    due: bool
    # The stream has further entries.
    more: bool

    @property
    def gone(self) -> KeyArray:
        """Keys whose row is not there any more, or belongs in no list."""
        return self.keys[~member(self.keys, self.rows.keys)]


def read_batch(
    session: Session, size: int, handover: Handover, learns: bool, after: int | None = None
) -> Batch:
    """Read up to `size` entries, the oldest first, and their rows.

    `learns`: whether there is anything to learn at all. `after`: read only entries after this one, for
    learning alone: markers are not looked for.
    """
    with session.snapshot():
        index = read_index(session)
        truncated, marker = (None, None) if after is not None else session.one(MARKERS)
        if truncated is not None:
            before = [part[0] for part in session.copy_out(BEFORE, [INT8], {"seq": truncated})]
            return _empty(session, index, np.concatenate(before), truncated=True)
        if marker is not None:
            return _empty(session, index, np.zeros(0, dtype=np.int64), resync=True)
        columns = [INT8, index.keys.column, INT8]
        entries = [*session.copy_out(ENTRIES, columns, {"size": size + 1, "after": after or 0})]
        if not entries:
            return _empty(session, index, np.zeros(0, dtype=np.int64))
        seqs = np.concatenate([part[0] for part in entries])
        more = len(seqs) > size
        told = index.keys.read(np.concatenate([part[1] for part in entries]))[:size]
        keys = np.unique(told[np.concatenate([part[2] for part in entries])[:size] == 1])
        rows, far = read_with_far(session, index, keys)
        fresh = _labelled(index, rows)
        waiting = handover.pending[~member(handover.pending, keys)]
        due = learns and len(fresh) + handover.waiting >= int(index.options["learn_rows"])
        none = no_rows(index)
        return Batch(
            index=index,
            seqs=seqs[:size],
            keys=keys,
            rows=rows,
            far=far,
            items=read_items(session, index, keys),
            truncated=False,
            resync=False,
            pending=read_by_key(session, index, waiting) if due else none,
            examined=read_by_key(session, index, handover.held_out) if due else none,
            due=due,
            more=more,
        )


def with_rows(session: Session, batch: Batch, rows: Rows) -> Batch:
    """The batch with further rows, which leave their lists and join them anew."""
    index = batch.index
    further = rows.take(~member(rows.keys, batch.keys))
    if len(further) == 0:
        return batch
    keys = np.concatenate([batch.keys, further.keys])
    with session.snapshot():
        items = read_items(session, index, keys)
    return replace(batch, keys=keys, rows=join_rows(index, [batch.rows, further]), items=items)


def _labelled(index: IndexRow, rows: Rows) -> KeyArray:
    """Keys of the rows that count towards a stage: those with labels, or all if the index has no labels."""
    return rows.keys if index.labels is None else rows.keys[rows.labels.lengths > 0]


def _empty(
    session: Session,
    index: IndexRow,
    seqs: npt.NDArray[np.int64],
    *,
    truncated: bool = False,
    resync: bool = False,
) -> Batch:
    none, keys = no_rows(index), index.keys.empty()
    items = read_items(session, index, keys)
    more = truncated or resync
    return Batch(index, seqs, keys, none, keys, items, truncated, resync, none, none, due=False, more=more)


def handover_after(batch: Batch, before: Handover, *, learns: bool, studied: bool, forgot: bool) -> Handover:
    """What the next run must know once this batch is installed.

    `studied` says that the learner has learned from what was pending, `forgot` that it has let go of all keys
    that were deleted or changed. Where nothing is learned any more (`learns` is false), no row waits for it.
    """
    studied, forgot = studied or not learns, forgot or not learns
    index, rows = batch.index, batch.rows
    held = training.held_out(index, rows)
    labelled = rows.labels.lengths > 0 if index.labels is not None else np.ones(len(rows), dtype=bool)
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
    )
