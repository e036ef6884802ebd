"""Lists and areas that have grown long are split, and rows move to the lists where they are at home now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import CodeArray, nearest
from foh_pg.geometry import Geometry
from foh_pg.runs.session import Session
from foh_pg.tables.centers import Centers, make_centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, member
from foh_pg.tables.lists import read_lists

# A list this many times as long as it should be is split, unless it has no more than SHORT_LIST members.
LONG_LIST = 3.0
SHORT_LIST = 64

# An area this many times as long as it should be is split, unless it has no more than SHORT_AREA centers.
LONG_AREA = 2.0
SHORT_AREA = 16

# A piece of a split list or area may have this share of the length at which these are split.
PIECE = 0.75

# Members of lists that are split in one batch, the longest first (one list at least), and members that show
# where the pieces of one list lie.
SPLIT_ROWS = 4000
SPLIT_MEMBERS = 4096

# Lists around a new center whose members may be nearer to it.
AROUND = 64

# Members that are looked at for whether they are still at home: of lists where that is due, and of others,
# those first that were not looked at for the longest time.
DUE_ROWS = 40_000
OTHER_ROWS = 2000

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moves:
    """Rows that belong to other lists than those they are in."""

    # The centers from now on, with the new ones at their end; lists are not yet changed.
    centers: Centers
    # keys, old, new: members that move, the list they leave and the list they join, by the ids of centers.
    keys: KeyArray
    old: IntArray
    new: IntArray

    @classmethod
    def none(cls, index: IndexRow, centers: Centers) -> Moves:
        empty = np.zeros(0, dtype=np.int64)
        return cls(centers, index.keys.empty(), empty, empty)


def maintain(
    session: Session, index: IndexRow, geometry: Geometry, centers: Centers, changed: KeyArray, version: int
) -> Moves:
    """Split what has grown long, and find the rows that are no longer at home in their lists.

    `changed`: keys in the stream, which leave their lists anyway.
    """
    rng = np.random.default_rng([int(index.options["seed"]), version])
    after, pieces = _split_lists(session, index, geometry, rng, centers, changed, version)
    after, areas = _split_areas(rng, after)
    due = np.zeros(len(after), dtype=bool)
    due[_around(after, np.concatenate([np.zeros(0, dtype=np.int64), *pieces]))] = True
    due |= np.isin(after.area, areas)
    after = after.with_(checked=np.where(due, 0, after.checked))
    chosen = _chosen(after, np.array([each[0] for each in pieces], dtype=np.int64))
    moves = _astray(session, index, after, chosen, changed)
    after.checked[chosen] = version
    return moves


# -- splitting -----------------------------------------------------------------------------------------------


def list_limit(index: IndexRow, centers: Centers) -> float:
    """The length above which a list is split."""
    rows = int(centers.lengths.sum())
    target = clustering.target_centers(max(rows, 1), index.options["centers"])
    return max(LONG_LIST * rows / target, SHORT_LIST)


def _split_lists(
    session: Session,
    index: IndexRow,
    geometry: Geometry,
    rng: np.random.Generator,
    centers: Centers,
    changed: KeyArray,
    version: int,
) -> tuple[Centers, list[IntArray]]:
    """Cut long lists into pieces; return the centers, and for each list the positions of its pieces.

    The old center stays with the largest piece, new ones get the others.
    """
    limit = list_limit(index, centers)
    room = _room(index, centers)
    tried, bits = centers.tried.copy(), centers.bits.copy()
    next_center, total = index.next_center, len(centers)
    added: list[Centers] = []
    pieces: list[IntArray] = []
    for at in _long(centers, limit):
        if room < 1:
            break
        members = _members(session, index, int(centers.ids[at]), changed)
        found = _split_one(geometry, rng, members, limit, room + 1)
        if len(found) < 2:
            tried[at] = centers.lengths[at]
            continue
        bits[at], count = found[0], len(found) - 1
        levels = clustering.BitLevels(
            centers.areas, found[1:], clustering.nearest_bits(found[1:], centers.areas)
        )
        new = make_centers(index, next_center, levels, version)
        # Members that move keep their codes.
        new.versions[:], new.stale[:] = centers.versions[at], centers.stale[at]
        added.append(new)
        pieces.append(np.append(at, np.arange(total, total + count)))
        next_center, total, room = next_center + count, total + count, room - count
    area = centers.area.copy()
    moved = np.array([each[0] for each in pieces], dtype=np.int64)
    area[moved] = clustering.nearest_bits(bits[moved], centers.areas)
    return centers.with_(tried=tried, bits=bits, area=area).joined(added), pieces


def _room(index: IndexRow, centers: Centers) -> int:
    """How many centers may be added: any number, unless the user has fixed it."""
    fixed = index.options["centers"]
    return len(centers) + 1 if fixed is None else max(0, int(fixed) - len(centers))


def _long(centers: Centers, limit: float) -> list[int]:
    """Positions of the lists to split, the longest first; not those that were tried in vain a while ago."""
    long = np.flatnonzero((centers.lengths > limit) & (centers.lengths > 1.5 * centers.tried))
    long = long[np.argsort(-centers.lengths[long], kind="stable")]
    fits = int(np.searchsorted(np.cumsum(centers.lengths[long]), SPLIT_ROWS, side="right"))
    listed: list[int] = long[: max(1, fits)].tolist()
    return listed


def _members(session: Session, index: IndexRow, center: int, changed: KeyArray) -> CodeArray:
    """The geometry bits of the members of a list."""
    with session.snapshot():
        entries = read_lists(session, index, np.array([center]))
    return np.asarray(entries.geometry[~member(entries.keys, changed)])


def _split_one(
    geometry: Geometry, rng: np.random.Generator, bits: CodeArray, limit: float, pieces: int
) -> CodeArray:
    """The bits of the pieces of a list, that of the largest piece first; one where it cannot be split."""
    shown = bits
    if len(bits) > SPLIT_MEMBERS:
        shown = bits[np.sort(rng.choice(len(bits), SPLIT_MEMBERS, replace=False))]
    if len(shown) < 2:
        return bits[:0]
    longest = max(2.0, PIECE * limit * len(shown) / len(bits))
    piece = clustering.split_list(rng, shown, longest, pieces)
    found = np.unique(geometry.means(shown, piece, shown[: piece.max() + 1]), axis=0)
    piece = clustering.nearest_bits(shown, found)
    return np.asarray(found[np.argsort(-np.bincount(piece, minlength=len(found)), kind="stable")])


def _split_areas(rng: np.random.Generator, centers: Centers) -> tuple[Centers, IntArray]:
    """Cut areas with many centers into pieces; return the centers, and positions of the changed areas."""
    wanted = len(centers) / clustering.target_areas(len(centers))
    limit = max(LONG_AREA * wanted, SHORT_AREA)
    lengths = np.bincount(centers.area, minlength=len(centers.areas))
    areas, area, changed = centers.areas.copy(), centers.area.copy(), [np.zeros(0, dtype=np.int64)]
    for at in np.flatnonzero(lengths > limit).tolist():
        inside = np.flatnonzero(centers.area == at)
        bits = centers.bits[inside]
        piece = clustering.split_list(rng, bits, PIECE * limit)
        # Where as many centers have a bit as not, the first one decides.
        found = clustering.majority(bits, piece, bits[np.unique(piece, return_index=True)[1]])
        numbers = np.append(at, np.arange(len(areas), len(areas) + len(found) - 1))
        areas = np.concatenate([areas, found[1:]])
        areas[at], area[inside] = found[0], numbers[piece]
        changed.append(numbers[: len(found) if len(found) > 1 else 0])
    return centers.with_(areas=areas, area=area), np.concatenate(changed)


# -- homes ---------------------------------------------------------------------------------------------------


def _around(centers: Centers, made: IntArray) -> IntArray:
    """Positions of the lists near centers that are new or have moved, and of these lists themselves."""
    if len(made) == 0:
        return made
    return np.union1d(made, nearest(centers.bits[made], centers.bits, AROUND)[0].reshape(-1))


def _chosen(centers: Centers, split: IntArray) -> IntArray:
    """Positions of the lists to look at now: those that were split, then those not looked at for longest."""
    others = np.setdiff1d(np.flatnonzero(centers.lengths), split)
    order = np.concatenate([split, others[np.argsort(centers.checked[others], kind="stable")]])
    rows = np.cumsum(centers.lengths[order])
    due = (centers.checked[order] == 0) & (rows <= DUE_ROWS)
    return np.asarray(order[due | (rows <= OTHER_ROWS) | (np.arange(len(order)) < len(split))])


def _astray(
    session: Session, index: IndexRow, centers: Centers, chosen: IntArray, changed: KeyArray
) -> Moves:
    """The members of some lists that are at home in another one."""
    with session.snapshot():
        entries = read_lists(session, index, centers.ids[chosen])
    entries = entries.take(~member(entries.keys, changed))
    homes = centers.ids[centers.homes(entries.geometry, index.layout)]
    moves = homes != entries.centers
    return Moves(centers, entries.keys[moves], entries.centers[moves], homes[moves])
