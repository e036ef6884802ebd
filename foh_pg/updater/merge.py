"""A batch merged into the lists: what joins, what leaves, what moves, and what is encoded again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray, width
from foh_pg.updater.affected import Affected, find_affected
from foh_pg.updater.batch import Batch
from foh_pg.updater.build import choose_centers
from foh_pg.updater.centers import SAMPLE, Centers
from foh_pg.updater.description import Index
from foh_pg.updater.items import Items, items_of, read_items, write_items
from foh_pg.updater.keys import KeyArray, member, positions
from foh_pg.updater.lists import (
    Entries,
    ListChange,
    change_lists,
    join_entries,
    no_entries,
    read_lists,
    read_tails,
    write_lists,
)
from foh_pg.updater.maintain import Maintained, follow, split, with_changes
from foh_pg.updater.model import Model
from foh_pg.updater.run import Run
from foh_pg.updater.session import Session
from foh_pg.updater.source import read_by_key

# Members of opened lists that are read and encoded at a time.
OPENED_ROWS = 50_000

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """Rows with their codes and the ids of their centers (n, homes)."""

    keys: KeyArray
    codes: CodeArray
    centers: IntArray

    def entries(self) -> Entries:
        count = self.centers.shape[1]
        rows = np.repeat(np.arange(len(self.keys)), count)
        return Entries(
            self.centers.reshape(-1), np.zeros(len(rows), dtype=np.int64), self.keys[rows], self.codes[rows]
        )


@dataclass(frozen=True)
class Merged:
    """What a batch makes of the index.

    Attributes
    ----------
    centers : Centers
        From now on.
    lists : ListChange
    gone, put : array and Items
        Items to delete and to write.
    opened, encoded : int
        Lists that were encoded again, and rows in them.
    """

    centers: Centers
    lists: ListChange
    gone: KeyArray
    put: Items
    opened: int
    encoded: int

    def write(self, session: Session, index: Index) -> None:
        write_lists(session, index, self.lists)
        write_items(session, index, self.gone, self.put)


def merge(
    session: Session,
    run: Run,
    batch: Batch,
    centers: Centers,
    model: Model,
    *,
    learned: bool,
    rows_seen: int,
    budget: int | None,
) -> Merged:
    """Merge one batch under a model; `learned` says that its hash functions are new."""
    index = batch.index
    version = index.version + 1
    rng = np.random.default_rng([int(index.options["seed"]), version])
    with run.phase("encode"):
        codes = model.encode(batch.rows.vectors, batch.rows.labels)
    with run.phase("affected"):
        affected = _affected(session, index, centers, model, batch, learned, budget)
        if len(centers.lengths):
            weights = np.maximum(centers.lengths, 1)
            run.metrics["flipped"] = round(float(np.average(affected.stale, weights=weights)), 6)
    with run.phase("centers"):
        centers = centers.with_(stale=affected.stale)
        kept = _maintain(session, rng, batch, centers, codes, model, rows_seen, version)
        opened = np.union1d(kept.opened, affected.lists)
        fresh = _renew_codes(session, index, centers, kept.centers, opened, model, batch.keys)
    with run.phase("encode again", int(centers.lengths[opened].sum())):
        entries, moved, missing = _replace(session, run, batch, centers.ids[opened], fresh, model)
    with run.phase("place"):
        homes = _homes(index, fresh, codes, batch, model)
        placed = Placed(batch.rows.keys, codes, homes)
        return _changes(
            session, index, batch, fresh, entries, centers.ids[opened], placed, moved, missing, rng, version
        )


def _affected(
    session: Session,
    index: Index,
    centers: Centers,
    model: Model,
    batch: Batch,
    learned: bool,
    budget: int | None,
) -> Affected:
    if not learned:
        return Affected(np.zeros(0, dtype=np.int64), centers.stale)
    return find_affected(session, index, centers, model, batch.keys, budget)


def _maintain(
    session: Session,
    rng: np.random.Generator,
    batch: Batch,
    centers: Centers,
    codes: CodeArray,
    model: Model,
    rows_seen: int,
    version: int,
) -> Maintained:
    index = batch.index
    if len(centers) == 0:
        # The first rows choose among themselves.
        return Maintained(
            choose_centers(index, model, len(batch.rows), batch.rows), np.zeros(0, dtype=np.int64)
        )
    gone, come = follow(index, rng, centers, batch.rows, codes, batch.keys, rows_seen)
    opened, pieces, failed = split(session, index, rng, centers, model, batch.keys)
    tried = centers.tried.copy()
    tried[failed] = centers.lengths[failed]
    pieces_stay = ~member(pieces.keys, come.keys)
    if len(pieces.keys):
        come = come.append(
            type(pieces)(
                pieces.keys[pieces_stay],
                pieces.codes[pieces_stay],
                pieces.vectors[pieces_stay],
                pieces.priorities[pieces_stay],
            )
        )
    made = with_changes(index, centers.with_(tried=tried), gone, come, version, model.scale)
    return Maintained(made.centers, np.union1d(made.opened, opened))


def _renew_codes(
    session: Session,
    index: Index,
    before: Centers,
    after: Centers,
    opened: IntArray,
    model: Model,
    changed: KeyArray,
) -> Centers:
    """Encode the centers of opened lists again, from their rows."""
    at = after.find(before.ids[opened])
    at = at[at >= 0]
    if len(at) == 0:
        return after
    with session.snapshot():
        rows = read_by_key(session, index, np.unique(after.keys[at]))
    found = positions(after.keys[at], rows.keys)
    there = (found >= 0) & ~member(after.keys[at], changed)
    codes = after.codes.copy()
    codes[at[there]] = model.encode(rows.vectors, rows.labels)[found[there]]
    return after.with_(codes=codes)


def _homes(index: Index, centers: Centers, codes: CodeArray, batch: Batch, model: Model) -> IntArray:
    if len(codes) == 0:
        return np.zeros((0, 1), dtype=np.int64)
    return centers.ids[centers.homes(index, codes, batch.rows.vectors, model.scale)]


def _replace(
    session: Session, run: Run, batch: Batch, opened: IntArray, centers: Centers, model: Model
) -> tuple[Entries, Placed, KeyArray]:
    """Read opened lists, encode their members again and find their homes; also members that are not there.

    A member that changed since has a newer entry in the stream, which wins whatever is written here.
    """
    index = batch.index
    none = Placed(
        index.keys.empty(), np.zeros((0, width(index.bits)), dtype=np.uint8), np.zeros((0, 1), dtype=np.int64)
    )
    if len(opened) == 0:
        return no_entries(index), none, index.keys.empty()
    with session.snapshot():
        entries = read_lists(session, index, opened)
    members = np.unique(entries.keys[~member(entries.keys, batch.keys)])
    placed, missing = [], [index.keys.empty()]
    for start in range(0, len(members), OPENED_ROWS):
        keys = members[start : start + OPENED_ROWS]
        with session.snapshot():
            rows = read_by_key(session, index, keys)
        codes = model.encode(rows.vectors, rows.labels)
        homes = centers.homes(index, codes, rows.vectors, model.scale) if len(rows) else none.centers
        placed.append(Placed(rows.keys, codes, centers.ids[homes]))
        missing.append(keys[~member(keys, rows.keys)])
        run.step(start + len(keys), len(members))
    filled = [part for part in placed if len(part.keys)] or [none]
    moved = Placed(
        np.concatenate([part.keys for part in filled]),
        np.concatenate([part.codes for part in filled]),
        np.concatenate([part.centers for part in filled]),
    )
    return entries, moved, np.concatenate(missing)


def _changes(
    session: Session,
    index: Index,
    batch: Batch,
    centers: Centers,
    entries: Entries,
    opened: IntArray,
    placed: Placed,
    moved: Placed,
    missing: KeyArray,
    rng: np.random.Generator,
    version: int,
) -> Merged:
    """Turn homes into changes of lists, items and centers."""
    single = int(index.options["homes"]) <= 1
    joining = join_entries(index, [placed.entries(), moved.entries()])
    leaving = np.concatenate([batch.keys, moved.keys, missing])
    with session.snapshot():
        # Where rows have one list only, members of an opened list are in no other.
        items = None if single else read_items(session, index, np.concatenate([moved.keys, missing]))
        left = batch.items.lists() if items is None else np.union1d(batch.items.lists(), items.lists())
        whole = np.setdiff1d(left, opened)
        tails = np.setdiff1d(np.unique(joining.centers), np.union1d(whole, opened))
        loaded = join_entries(
            index, [entries, read_lists(session, index, whole), read_tails(session, index, tails)]
        )
    change = change_lists(index, loaded, leaving, joining)
    after = _recount(index, centers, loaded, leaving, joining, opened, rng, version)
    known = Items(entries.keys, entries.centers, batch.items.others.part(0, 0)) if single else items
    put = _items(placed, moved, known, single)
    gone = np.concatenate([batch.gone[member(batch.gone, batch.items.keys)], missing])
    return Merged(after, change, gone, put, len(opened), len(moved.keys))


def _items(placed: Placed, moved: Placed, known: Items | None, single: bool) -> Items:
    """Items of new rows, and of those that moved."""
    shapes = [part.centers.shape[1] for part in (placed, moved) if len(part.keys)]
    if not shapes:
        return items_of(placed.keys, placed.centers)
    changed = np.ones(len(moved.keys), dtype=bool)
    if single and known is not None and len(moved.keys):
        changed = known.homes[positions(moved.keys, known.keys)] != moved.centers[:, 0]
    parts = [
        part
        for part in (placed, Placed(moved.keys[changed], moved.codes[changed], moved.centers[changed]))
        if len(part.keys)
    ]
    if not parts:
        return items_of(placed.keys[:0], placed.centers[:0])
    return items_of(
        np.concatenate([part.keys for part in parts]), np.concatenate([part.centers for part in parts])
    )


def _recount(
    index: Index,
    centers: Centers,
    loaded: Entries,
    leaving: KeyArray,
    joining: Entries,
    opened: IntArray,
    rng: np.random.Generator,
    version: int,
) -> Centers:
    """Lengths, samples and versions of the lists after the change; centers without a member go."""
    total = len(centers)
    left = centers.find(loaded.centers[member(loaded.keys, leaving)])
    joined = centers.find(joining.centers)
    lengths = (
        centers.lengths - np.bincount(left[left >= 0], minlength=total) + np.bincount(joined, minlength=total)
    )
    renewed = centers.find(opened)
    renewed = renewed[renewed >= 0]
    stale, versions = centers.stale.copy(), centers.versions.copy()
    stale[renewed], versions[renewed] = 0, version
    sampled = centers.sampled.copy()
    sampled[renewed] = 0
    changed = centers.with_(lengths=lengths, stale=stale, versions=versions, sampled=sampled)
    return _resample(changed, leaving, joined, joining, rng).take(lengths > 0)


def _resample(
    centers: Centers, leaving: KeyArray, joined: IntArray, joining: Entries, rng: np.random.Generator
) -> Centers:
    """Take keys that leave out of the samples and fill these up with some that join."""
    within = np.arange(SAMPLE) < centers.sampled[:, None]
    stays = within.copy()
    stays[within] = ~member(centers.sample_keys[within], leaving)
    # Those that stay move to the front, in their order.
    order = np.argsort(~stays, axis=1, kind="stable")
    keys = np.take_along_axis(centers.sample_keys, order, axis=1)
    codes = np.take_along_axis(centers.sample_codes, order[:, :, None], axis=1)
    sampled = stays.sum(axis=1)
    shuffled = rng.permutation(len(joining))
    shuffled = shuffled[np.argsort(joined[shuffled], kind="stable")]
    lists = joined[shuffled]
    begins = np.flatnonzero(np.diff(lists, prepend=-1))
    rank = np.arange(len(lists)) - np.repeat(begins, np.diff(np.append(begins, len(lists))))
    place = sampled[lists] + rank
    fits = place < SAMPLE
    keys[lists[fits], place[fits]] = joining.keys[shuffled[fits]]
    codes[lists[fits], place[fits]] = joining.codes[shuffled[fits]]
    sampled = np.minimum(SAMPLE, sampled + np.bincount(lists, minlength=len(centers)))
    return centers.with_(sample_keys=keys, sample_codes=codes, sampled=sampled)
