"""A batch merged into the lists: what joins, what leaves, what is split, and what is encoded again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import CodeArray
from foh_pg.model.model import Model
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import SAMPLE, Centers, fill_samples
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.items import Items
from foh_pg.tables.keys import KeyArray, member, positions
from foh_pg.tables.lists import read_lists, read_tails
from foh_pg.tables.parts import Entries, Remarked, change_lists, entries_of, join_entries
from foh_pg.tables.source import Rows
from foh_pg.updater.affected import find_affected
from foh_pg.updater.batch import Batch, with_rows
from foh_pg.updater.choose import choose_centers
from foh_pg.updater.encode_again import encode_again, with_new_marks
from foh_pg.updater.index_state import State
from foh_pg.updater.install import Change, Merged
from foh_pg.updater.learn import Learned
from foh_pg.updater.maintain import Moves, maintain
from foh_pg.updater.placing import held_of
from foh_pg.updater.served_model import Placed, Served

IntArray = npt.NDArray[np.int64]

# A row has quite another embedding where more than this share of its geometry bits differ: of two vectors
# that have nothing to do with each other, half of them do. With more such rows than that share of all, the
# embedding model is likely to have changed.
ANOTHER = 0.25
MANY_REPLACED = 0.3


@dataclass(frozen=True)
class Merging:
    """A batch that is to be merged, and all that is needed for it."""

    session: Session
    run: Run
    state: State
    batch: Batch
    learned: Learned

    @property
    def index(self) -> IndexRow:
        return self.state.index

    @property
    def centers(self) -> Centers:
        """As they are before the batch."""
        return self.state.centers

    @property
    def model(self) -> Model:
        return self.learned.model

    @property
    def version(self) -> int:
        return self.index.version + 1

    @property
    def budget(self) -> int | None:
        """At most this many rows may be encoded again."""
        budget = self.index.options["budget"]
        return None if budget is None else max(0, int(budget) - self.run.rows_encoded)


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


def merge(session: Session, run: Run, state: State, batch: Batch, learned: Learned) -> Change:
    """The change that takes a batch into the lists."""
    named = with_rows(session, batch, _named_anew(state, batch, learned))
    work = Merging(session, run, state, named, learned)
    with run.phase("affected"):
        affected = _affected(work)
    with run.phase("centers"):
        moves = _maintain(work, work.centers.with_(stale=affected.stale))
    with run.phase("encode"):
        joining, homes = _join(work, moves.centers)
    opened = work.centers.ids[affected.lists]
    left = np.union1d(named.items.homes, moves.old)
    joined = np.union1d(homes, moves.new)
    touched = np.union1d(left, joined)
    alone = np.setdiff1d(opened, touched)
    with run.phase("encode again", int(work.centers.lengths[work.centers.find(alone)].sum())):
        encoded, incomplete = encode_again(session, run, work.index, work.model, work.centers, alone)
        renewed = np.union1d(np.intersect1d(opened, touched), incomplete)
        loaded = _load(work, left, joined, renewed)
    with run.phase("place"):
        after, merged = _changes(work, moves, joining, homes, encoded, loaded)
    run.rows += len(batch.seqs)
    run.stale = after.staleness
    run.metrics.update(learned.metrics)
    replaced = learned.handover.replaced + _replaced(work, joining, loaded.entries)
    _note_replaced(run, work.index, replaced, int(after.lengths.sum()))
    return Change(
        index=work.index,
        after=after,
        merged=merged,
        served=_served(work),
        learner=learned.learner,
        handover=replace(learned.handover, replaced=replaced),
        consumed=batch.seqs,
        metrics={
            **learned.metrics,
            "rows": len(batch.seqs),
            "stale": after.staleness,
            "replaced": replaced,
        },
    )


def _served(work: Merging) -> Served:
    """What is served from now on."""
    before, new = work.state.served, work.learned.new
    return Served(
        model=work.model,
        learned=work.version if new else before.learned,
        first=before.first and not new,
        placed=before.placed if len(work.centers) else Placed(work.version, work.index.next_center),
        far=np.concatenate([before.far[~member(before.far, work.batch.keys)], work.batch.far]),
    )


def _named_anew(state: State, batch: Batch, learned: Learned) -> Rows:
    """Rows placed earlier whose labels came into the dictionary only now: their signatures lack them."""
    before, labels = state.served.model.numbers, batch.pending.labels
    new = [name not in before and name in learned.model.numbers for name in labels.values.tolist()]
    counts = np.concatenate([[0], np.cumsum(np.array(new, dtype=np.int64))])[labels.bounds]
    return batch.pending.take(np.diff(counts) > 0)


def _affected(work: Merging) -> clustering.Affected:
    if not work.learned.new or len(work.centers) == 0:
        return clustering.Affected(np.zeros(0, dtype=np.int64), work.centers.stale)
    found = find_affected(work.session, work.index, work.centers, work.model, work.batch.keys, work.budget)
    weights = np.maximum(work.centers.lengths, 1)
    work.run.metrics["flipped"] = round(float(np.average(found.stale, weights=weights)), 6)
    return found


def _maintain(work: Merging, centers: Centers) -> Moves:
    """The centers from now on, and what moves between lists. Without centers, the batch gives the first."""
    if len(centers):
        geometry = work.model.geometry
        assert geometry is not None
        return maintain(work.session, work.index, geometry, centers, work.batch.keys, work.version)
    rows = work.batch.rows
    return Moves.none(work.index, choose_centers(work.index, work.model, len(rows), rows))


def _join(work: Merging, centers: Centers) -> tuple[Entries, IntArray]:
    """What the rows of the batch add to lists, and the ids of their centers."""
    rows = work.batch.rows
    held = held_of(work.model, rows)
    homes = centers.ids[centers.homes(held["geometry"], work.index.layout)]
    return entries_of(rows.keys, held, homes), homes


def _load(work: Merging, left: IntArray, joined: IntArray, renewed: IntArray) -> Loaded:
    session, index = work.session, work.index
    whole = np.union1d(left, renewed)
    tails = np.setdiff1d(joined, whole)
    with session.snapshot():
        parts = [read_lists(session, index, whole), read_tails(session, index, tails)]
    entries = join_entries(index, parts)
    entries, missing = with_new_marks(session, index, work.model, entries, renewed, work.batch.keys)
    return Loaded(entries, renewed, missing)


def _changes(
    work: Merging, moves: Moves, joining: Entries, homes: IntArray, encoded: Remarked, loaded: Loaded
) -> tuple[Centers, Merged]:
    """Turn homes into changes of lists, items and centers."""
    index, batch, entries = work.index, work.batch, loaded.entries
    leaving = member(entries.keys, np.concatenate([batch.keys, loaded.missing]))
    move = _moving(entries, moves)
    goes = (move >= 0) & ~leaving
    moved = entries.take(goes).moved(moves.new[move[goes]])
    leaving |= goes
    joining = join_entries(index, [joining, moved])
    change = change_lists(index, entries, leaving, joining, loaded.renewed, encoded)
    put = Items(batch.rows.keys, homes).joined([Items(moved.keys, moved.centers)])
    gone = np.concatenate([batch.gone[member(batch.gone, batch.items.keys)], loaded.missing])
    renewed = np.union1d(loaded.renewed, encoded.centers)
    run = work.run
    run.lists += len(renewed)
    run.rows_encoded += len(encoded.keys.values) + int(
        np.count_nonzero(np.isin(entries.centers, loaded.renewed))
    )
    if len(moved):
        run.metrics["moved"] = run.metrics.get("moved", 0) + len(moved)
    after = _recount(work, moves.centers, entries, leaving, joining, encoded, renewed)
    return after, Merged(work.centers, change, gone, put)


def _replaced(work: Merging, joining: Entries, entries: Entries) -> int:
    """How many rows of the batch were in lists with quite another embedding, by their geometry bits."""
    at = positions(entries.keys, joining.keys)
    found = np.flatnonzero(at >= 0)
    differing = np.unpackbits(entries.geometry[found] ^ joining.geometry[at[found]], axis=1).sum(axis=1)
    return len(np.unique(entries.keys[found[differing > ANOTHER * work.index.geometry]]))


def _note_replaced(run: Run, index: IndexRow, replaced: int, rows: int) -> None:
    """Say what to run where so many embeddings are others that their model must have changed."""
    if replaced > MANY_REPLACED * rows:
        run.note(
            f"{replaced} of {rows} rows have got quite another embedding since the index was built: if the "
            f"embedding model has changed, foh-pg build {index.name} --again learns from the new ones",
            about="replaced",
        )


def _moving(entries: Entries, moves: Moves) -> IntArray:
    """For each entry its position among the members that move, -1 where it stays."""
    found = np.full(len(entries), -1, dtype=np.int64)
    for center in np.unique(moves.old).tolist():
        where = np.flatnonzero(entries.centers == center)
        mine = np.flatnonzero(moves.old == center)
        at = positions(entries.keys[where], moves.keys[mine])
        found[where[at >= 0]] = mine[at[at >= 0]]
    return found


# -- what is known of lists ----------------------------------------------------------------------------------


def _recount(
    work: Merging,
    centers: Centers,
    entries: Entries,
    leaving: npt.NDArray[np.bool_],
    joining: Entries,
    encoded: Remarked,
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
    again, codes_of = centers.find(encoded.centers), work.model.codes_of
    return _resample(
        changed,
        np.unique(entries.keys[leaving]),
        np.concatenate([joined, centers.find(kept.centers), np.repeat(again, encoded.keys.lengths)]),
        np.concatenate([joining.keys, kept.keys, encoded.keys.values]),
        codes_of(np.concatenate([joining.marks, kept.marks, encoded.marks.values])),
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
