"""A batch merged into the lists: what joins, what leaves, what is split, and what is encoded again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray
from foh_pg.tables.centers import SAMPLE, Centers, fill_samples
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.items import Items, items_of, moved_items, read_items, write_items
from foh_pg.tables.keys import KeyArray, member, positions
from foh_pg.tables.lists import read_lists, read_tails, write_lists
from foh_pg.tables.model import Model
from foh_pg.tables.parts import Entries, ListChange, change_lists, join_entries
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.updater.affected import Affected, find_affected
from foh_pg.updater.batch import Batch
from foh_pg.updater.choose import choose_centers
from foh_pg.updater.encode_again import Encoded, encode_again, with_new_marks
from foh_pg.updater.maintain import Moves, maintain

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Merging:
    """A batch that is to be merged, and all that is needed for it."""

    session: Session
    run: Run
    batch: Batch
    # As they are before the batch.
    centers: Centers
    model: Model
    # Whether the hash functions of the model are new.
    learned: bool
    # At most this many rows may be encoded again.
    budget: int | None

    @property
    def index(self) -> IndexRow:
        return self.batch.index

    @property
    def version(self) -> int:
        return self.index.version + 1

    @property
    def single(self) -> bool:
        """Whether a row is in one list only."""
        return int(self.index.options["homes"]) <= 1


@dataclass(frozen=True)
class Merged:
    """What a batch makes of the index."""

    # From now on.
    centers: Centers
    lists: ListChange
    # gone, put: items to delete and to write.
    gone: KeyArray
    put: Items
    # opened, encoded, moved: lists that were encoded again, rows in them, rows that moved to another list.
    opened: int
    encoded: int
    moved: int

    def write(self, session: Session, index: IndexRow) -> None:
        write_lists(session, index, self.lists)
        write_items(session, index, self.gone, self.put)


@dataclass(frozen=True)
class Loaded:
    """Lists that are rewritten."""

    # All parts of the lists that rows leave or that are encoded again, the last part of those that rows only
    # join.
    entries: Entries
    # Ids of the lists among them whose marks are new.
    renewed: IntArray
    # Keys in them that the source does not have.
    missing: KeyArray


def merge(work: Merging) -> Merged:
    """Merge one batch."""
    run, batch, model = work.run, work.batch, work.model
    with run.phase("affected"):
        affected = _affected(work)
    with run.phase("centers"):
        moves = _maintain(work, work.centers.with_(stale=affected.stale))
    with run.phase("encode"):
        joining, homes = _place(work, moves.centers)
    opened = work.centers.ids[affected.lists]
    left = np.union1d(batch.items.lists(), moves.old)
    joined = np.union1d(homes, moves.new)
    touched = np.union1d(left, joined)
    alone = np.setdiff1d(opened, touched)
    with run.phase("encode again", int(work.centers.lengths[work.centers.find(alone)].sum())):
        encoded = encode_again(work.session, run, work.index, model, work.centers, alone)
        renewed = np.union1d(np.intersect1d(opened, touched), encoded.incomplete)
        loaded = _load(work, left, joined, renewed)
    with run.phase("place"):
        return _changes(work, moves, joining, homes, encoded, loaded)


def _affected(work: Merging) -> Affected:
    if not work.learned or len(work.centers) == 0:
        return Affected(np.zeros(0, dtype=np.int64), work.centers.stale)
    found = find_affected(work.session, work.index, work.centers, work.model, work.batch.keys, work.budget)
    weights = np.maximum(work.centers.lengths, 1)
    work.run.metrics["flipped"] = round(float(np.average(found.stale, weights=weights)), 6)
    return found


def _maintain(work: Merging, centers: Centers) -> Moves:
    """The centers from now on, and what moves between lists. Without centers, the batch gives the first."""
    if len(centers):
        return maintain(work.session, work.index, centers, work.batch.keys, work.version)
    rows = work.batch.rows
    return Moves.none(work.index, choose_centers(work.index, work.model, len(rows), rows))


def _place(work: Merging, centers: Centers) -> tuple[Entries, IntArray]:
    """What the rows of the batch add to lists, and the ids of their centers (n, homes)."""
    rows, model = work.batch.rows, work.model
    marks = model.marks(rows.vectors, rows.labels)
    geometry = model.geometry_bits(rows.vectors)
    homes = centers.ids[centers.homes(work.index, geometry)]
    each = np.repeat(np.arange(len(rows)), homes.shape[1])
    parts = np.zeros(homes.size, dtype=np.int64)
    return Entries(homes.reshape(-1), parts, rows.keys[each], geometry[each], marks[each]), homes


def _load(work: Merging, left: IntArray, joined: IntArray, renewed: IntArray) -> Loaded:
    session, index = work.session, work.index
    whole = np.union1d(left, renewed)
    tails = np.setdiff1d(joined, whole)
    with session.snapshot():
        parts = [read_lists(session, index, whole), read_tails(session, index, tails)]
    entries = join_entries(index, parts)
    entries, missing = with_new_marks(session, index, work.model, entries, renewed, work.batch.keys)
    if not work.single:
        # The other lists of such a key are not loaded. Its deletion is in the stream and will find them all.
        missing = missing[:0]
    return Loaded(entries, renewed, missing)


def _changes(
    work: Merging, moves: Moves, joining: Entries, homes: IntArray, encoded: Encoded, loaded: Loaded
) -> Merged:
    """Turn homes into changes of lists, items and centers."""
    index, batch, entries = work.index, work.batch, loaded.entries
    leaving = member(entries.keys, np.concatenate([batch.keys, loaded.missing]))
    place = _moving(entries, moves)
    goes = (place >= 0) & ~leaving
    moved = entries.take(goes).moved(moves.new[place[goes]])
    leaving |= goes
    joining = join_entries(index, [joining, moved])
    change = change_lists(index, entries, leaving, joining, loaded.renewed, encoded.remarked)
    put = items_of(batch.rows.keys, homes).joined([_moved_items(work, entries.take(goes), moved)])
    gone = np.concatenate([batch.gone[member(batch.gone, batch.items.keys)], loaded.missing])
    renewed = np.union1d(loaded.renewed, encoded.lists)
    in_renewed = int(np.count_nonzero(np.isin(entries.centers, loaded.renewed)))
    return Merged(
        _recount(work, moves.centers, entries, leaving, joining, encoded, renewed),
        change,
        gone,
        put,
        len(renewed),
        len(encoded.keys) + in_renewed,
        len(moved),
    )


def _moving(entries: Entries, moves: Moves) -> IntArray:
    """For each entry its place among the members that move, -1 where it stays."""
    found = np.full(len(entries), -1, dtype=np.int64)
    for center in np.unique(moves.old).tolist():
        where = np.flatnonzero(entries.centers == center)
        mine = np.flatnonzero(moves.old == center)
        at = positions(entries.keys[where], moves.keys[mine])
        found[where[at >= 0]] = mine[at[at >= 0]]
    return found


def _moved_items(work: Merging, left: Entries, joined: Entries) -> Items:
    """Items of the rows that move; not of those that were deleted since they were read."""
    if work.single:
        return items_of(joined.keys, joined.centers[:, None])
    with work.session.snapshot():
        items = read_items(work.session, work.index, np.unique(joined.keys))
    return moved_items(items, joined.keys, left.centers, joined.centers)


# -- what is known of lists ----------------------------------------------------------------------------------


def _recount(
    work: Merging,
    centers: Centers,
    entries: Entries,
    leaving: npt.NDArray[np.bool_],
    joining: Entries,
    encoded: Encoded,
    renewed: IntArray,
) -> Centers:
    """Lengths, samples and versions of the lists after the change."""
    total = len(centers)
    left, joined = centers.find(entries.centers[leaving]), centers.find(joining.centers)
    lengths = centers.lengths + np.bincount(joined, minlength=total) - np.bincount(left, minlength=total)
    stale, versions, sampled = centers.stale.copy(), centers.versions.copy(), centers.sampled.copy()
    at = centers.find(renewed)
    stale[at], versions[at], sampled[at] = 0, work.version, 0
    changed = centers.with_(lengths=lengths, stale=stale, versions=versions, sampled=sampled)
    kept = entries.take(~leaving & np.isin(entries.centers, renewed))
    codes_of = work.model.codes_of
    return _resample(
        changed,
        np.unique(entries.keys[leaving]),
        np.concatenate([joined, centers.find(kept.centers), centers.find(encoded.centers)]),
        np.concatenate([joining.keys, kept.keys, encoded.keys]),
        np.concatenate([codes_of(joining.marks), codes_of(kept.marks), encoded.codes]),
        np.random.default_rng([int(work.index.options["seed"]), work.version, 1]),
    )


def _resample(
    centers: Centers,
    leaving: KeyArray,
    joined: IntArray,
    keys: KeyArray,
    codes: CodeArray,
    rng: np.random.Generator,
) -> Centers:
    """Take keys that leave out of the samples and fill these up with some that join."""
    within = np.arange(SAMPLE) < centers.sampled[:, None]
    stays = within.copy()
    stays[within] = ~member(centers.sample_keys[within], leaving)
    # Those that stay move to the front, in their order.
    order = np.argsort(~stays, axis=1, kind="stable")
    sample_keys = np.take_along_axis(centers.sample_keys, order, axis=1)
    sample_codes = np.take_along_axis(centers.sample_codes, order[:, :, None], axis=1)
    sampled = fill_samples(rng, stays.sum(axis=1), sample_keys, sample_codes, joined, keys, codes)
    return centers.with_(sample_keys=sample_keys, sample_codes=sample_codes, sampled=sampled)
