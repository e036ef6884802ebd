"""Lists that have grown long are split. Between two fillings nothing else moves an unchanged row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.tables.centers import Centers, make_centers, stored_rows
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, member
from foh_pg.tables.lists import read_members
from foh_pg.tables.session import Session
from foh_pg.tables.source import Rows, read_by_key

# A list this many times as long as it should be is split, unless it has no more than SHORT_LIST members.
LONG_LIST = 3.0
SHORT_LIST = 64

# A piece of a split list may have this share of the length at which lists are split.
PIECE = 0.75

# Members of lists that are split in one batch, the longest first (one list at least), and members that show
# where the pieces of one list lie.
SPLIT_ROWS = 4000
SPLIT_MEMBERS = 4096

# Members whose new lists are found at a time.
MEMBERS_AT_ONCE = 20_000

# Areas are made anew once there should be this many times as many.
FEW_AREAS = 2

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Splits:
    """Lists that were split."""

    # From now on, with the new ones at their end; lists are not yet changed.
    centers: Centers
    # Ids of the lists that were split.
    lists: IntArray
    # keys, old, new: members that move, the list they leave and the list they join.
    keys: KeyArray
    old: IntArray
    new: IntArray


def split(session: Session, index: IndexRow, centers: Centers, changed: KeyArray, version: int) -> Splits:
    """Cut long lists into pieces. The old center stays with the largest piece, new ones get the others.

    `changed`: keys in the stream, which leave their lists anyway.
    """
    rng = np.random.default_rng([int(index.options["seed"]), version])
    limit = list_limit(index, centers)
    room = _room(index, centers)
    lists, moved = [], [(index.keys.empty(), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
    next_center = index.next_center
    tried, rows, added = centers.tried.copy(), centers.rows.copy(), []
    for at in _long(centers, limit) if room else []:
        found = _split_one(session, index, rng, int(centers.ids[at]), changed, limit, room + 1)
        if found is None:
            tried[at] = centers.lengths[at]
            continue
        keys, pieces, means = found
        count = len(means) - 1
        rows[at] = stored_rows(index, means[:1])[0]
        area = np.full(count, centers.area[at])
        added.append(make_centers(index, next_center, centers.areas, area, means[1:], version))
        goes = pieces > 0
        old = np.full(int(goes.sum()), centers.ids[at])
        moved.append((keys[goes], old, next_center + pieces[goes] - 1))
        lists.append(int(centers.ids[at]))
        next_center, room = next_center + count, room - count
        if room < 1:
            break
    after = centers.with_(tried=tried, rows=rows)
    after = after.joined(added)
    columns = [np.concatenate(column) for column in zip(*moved, strict=True)]
    return Splits(_with_areas(index, rng, after), np.array(lists, dtype=np.int64), *columns)


def list_limit(index: IndexRow, centers: Centers) -> float:
    """The length above which a list is split."""
    rows = int(centers.lengths.sum())
    target = clustering.target_centers(max(rows, 1), index.options["centers"])
    return max(LONG_LIST * rows / target, SHORT_LIST)


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


def _split_one(
    session: Session,
    index: IndexRow,
    rng: np.random.Generator,
    center: int,
    changed: KeyArray,
    limit: float,
    pieces: int,
) -> tuple[KeyArray, IntArray, npt.NDArray[np.float32]] | None:
    """Members of a list, the piece of each, and the means of pieces; None where it cannot be split."""
    with session.snapshot():
        listed = read_members(session, index, np.array([center])).keys.values
        keys = np.unique(listed[~member(listed, changed)])
        shown = keys
        if len(keys) > SPLIT_MEMBERS:
            shown = keys[np.sort(rng.choice(len(keys), SPLIT_MEMBERS, replace=False))]
        rows = read_by_key(session, index, shown)
    if len(rows) < 2:
        return None
    longest = max(2.0, PIECE * limit * len(shown) / len(keys))
    means, _ = clustering.split_list(rng, rows.vectors, longest, index.distance, pieces)
    if len(means) < 2:
        return None
    found: list[tuple[KeyArray, IntArray]] = []
    for start in range(0, len(keys), MEMBERS_AT_ONCE):
        some = (
            rows if len(shown) == len(keys) else _read(session, index, keys[start : start + MEMBERS_AT_ONCE])
        )
        found.append((some.keys, clustering.nearest_center(some.vectors, means, index.distance)))
        if len(shown) == len(keys):
            break
    placed, piece = (np.concatenate(column) for column in zip(*found, strict=True))
    # The largest piece comes first: it keeps the center and moves nothing.
    order = np.argsort(-np.bincount(piece, minlength=len(means)), kind="stable")
    number = np.empty(len(means), dtype=np.int64)
    number[order] = np.arange(len(means))
    return placed, number[piece], means[order]


def _read(session: Session, index: IndexRow, keys: KeyArray) -> Rows:
    with session.snapshot():
        return read_by_key(session, index, keys)


def _with_areas(index: IndexRow, rng: np.random.Generator, centers: Centers) -> Centers:
    """Find new areas where splits have made the present ones long; centers and lists stay."""
    if clustering.target_areas(len(centers)) <= FEW_AREAS * (len(centers.areas) + 1):
        return centers
    areas, area = clustering.group_centers(rng, centers.rows, index.distance)
    return centers.with_(areas=stored_rows(index, areas), area=area)
