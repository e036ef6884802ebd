"""Centers that follow the stream: which go, which come, and whose lists are opened for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg import pool
from foh_pg.codes import CodeArray
from foh_pg.pool.centers import FROM_SPLIT
from foh_pg.updater.centers import Centers, make_centers
from foh_pg.updater.description import Index
from foh_pg.updater.keys import KeyArray, member, positions
from foh_pg.updater.lists import read_lists
from foh_pg.updater.model import Model
from foh_pg.updater.session import Session
from foh_pg.updater.source import Rows, read_by_key

# A list this many times as long as the mean one is split, unless it is short all the same.
LONG_LIST = 4.0
SHORT_LIST = 64

# Members of lists that are split in one run, the longest first (one list at least), and members among which
# the new centers are chosen.
SPLIT_ROWS = 4000
SPLIT_MEMBERS = 4096

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Rows that may become centers, with their codes and priorities."""

    keys: KeyArray
    codes: CodeArray
    vectors: npt.NDArray[np.float32]
    priorities: npt.NDArray[np.float64]

    def append(self, other: Candidates) -> Candidates:
        return Candidates(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.vectors, other.vectors]),
            np.concatenate([self.priorities, other.priorities]),
        )


@dataclass(frozen=True)
class Maintained:
    """The centers from now on (lists not yet changed), and positions, in the old ones, of lists to open."""

    centers: Centers
    opened: IntArray


def follow(
    index: Index,
    rng: np.random.Generator,
    centers: Centers,
    rows: Rows,
    codes: CodeArray,
    changed: KeyArray,
    rows_seen: int,
) -> tuple[IntArray, Candidates]:
    """Keep the centers a sample of the stream: positions of those that go, and rows that come.

    A center whose row was deleted goes; one whose row has changed is made anew from it.
    """
    dead = member(centers.keys, changed)
    alive = np.flatnonzero(~dead)
    live_rows = int(centers.lengths.sum()) + len(rows)
    target = pool.target_centers(live_rows, int(index.options["probes"]), index.options["centers"])
    asked = pool.sample_centers(
        rng, centers.priorities[alive], len(rows), max(rows_seen, len(rows), live_rows), target
    )
    at = positions(centers.keys[dead], rows.keys)
    renewed, kept = at[at >= 0], centers.priorities[dead][at >= 0]
    chosen = asked.chosen
    fresh = ~np.isin(chosen, renewed)
    who = np.concatenate([renewed, chosen[fresh]])
    priorities = np.concatenate([kept, asked.priorities[fresh]])
    gone = np.sort(np.concatenate([np.flatnonzero(dead), alive[asked.dropped]]))
    if len(gone) == len(centers) and len(who) == 0:
        # No row comes that could be a center: the longest list keeps its own, for what is left in it.
        gone = np.delete(gone, np.argmax(centers.lengths[gone]))
    return gone, Candidates(rows.keys[who], codes[who], rows.vectors[who], priorities)


def split(
    session: Session,
    index: Index,
    rng: np.random.Generator,
    centers: Centers,
    model: Model,
    changed: KeyArray,
) -> tuple[IntArray, Candidates, IntArray]:
    """Find further centers inside lists that have grown long.

    Returns
    -------
    opened, candidates, failed
        Positions of the lists that are split, the rows that become centers, and positions of lists whose
        members are all alike.
    """
    none = Candidates(
        index.keys.empty(),
        centers.codes[:0],
        np.zeros((0, index.dimensions), dtype=np.float32),
        np.zeros(0),
    )
    if len(centers) == 0 or index.options["centers"] is not None:
        return np.zeros(0, dtype=np.int64), none, np.zeros(0, dtype=np.int64)
    limit = max(LONG_LIST * float(centers.lengths.mean()), SHORT_LIST)
    long = pool.too_long(centers.lengths, limit)
    long = long[centers.lengths[long] > 1.5 * centers.tried[long]]
    long = long[np.argsort(-centers.lengths[long], kind="stable")]
    long = long[: max(1, int(np.searchsorted(np.cumsum(centers.lengths[long]), SPLIT_ROWS, side="right")))]
    opened, failed = [], []
    for at in np.sort(long).tolist():
        found = _split_one(session, index, rng, centers.take(np.array([at])), model, changed, limit)
        if len(found.keys):
            opened.append(at)
            none = none.append(found)
        else:
            failed.append(at)
    return np.array(opened, dtype=np.int64), none, np.array(failed, dtype=np.int64)


def _split_one(
    session: Session,
    index: Index,
    rng: np.random.Generator,
    center: Centers,
    model: Model,
    changed: KeyArray,
    limit: float,
) -> Candidates:
    with session.snapshot():
        entries = read_lists(session, index, center.ids)
        keys = np.unique(entries.keys[~member(entries.keys, changed)])
        if len(keys) > SPLIT_MEMBERS:
            keys = keys[np.sort(rng.choice(len(keys), SPLIT_MEMBERS, replace=False))]
        rows = read_by_key(session, index, keys)
    codes = model.encode(rows.vectors, rows.labels)
    chosen, _ = pool.split_list(
        rng,
        codes,
        rows.vectors,
        center.codes,
        center.rows,
        pieces=min(int(np.ceil(2 * center.lengths[0] / limit)), 64),
        bits=index.bits,
        metric=index.distance,
        blend=index.blend(model.scale),
    )
    return Candidates(
        rows.keys[chosen], codes[chosen], rows.vectors[chosen], np.full(len(chosen), FROM_SPLIT)
    )


def with_changes(
    index: Index, centers: Centers, gone: IntArray, come: Candidates, version: int, scale: float
) -> Maintained:
    """Take centers away and add others; the lists nearest to those that come are opened for them."""
    stays = np.ones(len(centers), dtype=bool)
    stays[gone] = False
    # A row is the center of one list.
    first = np.sort(np.unique(come.keys, return_index=True)[1])
    first = first[~member(come.keys[first], centers.keys[stays])]
    made = make_centers(
        index,
        index.next_center,
        come.keys[first],
        come.codes[first],
        come.vectors[first],
        come.priorities[first],
        version,
    )
    opened = gone
    if len(made) and len(centers):
        nearest = centers.homes(index, made.codes, made.rows, scale)[:, 0]
        opened = np.union1d(gone, nearest)
    return Maintained(centers.take(stays).append(made), opened)
