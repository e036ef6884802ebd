"""Centers of an index as an updater sees them: foh.<index>_area, _center and _sample side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import CodeArray, width
from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.errors import StateError
from foh_pg.geometry import Layout
from foh_pg.postgres.binary_copy import FLOAT4, INT4, INT8, Array
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.page_parts import bit_bytes, page_of
from foh_pg.tables.parts import pairs_of

# Members of a list that show how stale it is.
SAMPLE = 16

# What stands in area 0 are the areas themselves.
AREAS = "SELECT a.area, a.ids, a.geometry FROM {area} a ORDER BY a.area, a.part"
CENTERS = "SELECT c.center, c.length, c.version, c.stale, c.checked FROM {center} c ORDER BY c.center"
SAMPLES = "SELECT t.center, t.tried, t.ids, t.codes FROM {sample} t ORDER BY t.center"
COUNT = """
UPDATE {center} c SET length = u.length, version = u.version, stale = u.stale, checked = u.checked
FROM ROWS FROM (pg_catalog.unnest(%(ids)s::int[]), pg_catalog.unnest(%(lengths)s::int[]),
                pg_catalog.unnest(%(versions)s::bigint[]), pg_catalog.unnest(%(stale)s::real[]),
                pg_catalog.unnest(%(checked)s::bigint[]))
     AS u (center, length, version, stale, checked)
WHERE c.center = u.center
"""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Centers(SideBySide):
    """All arrays but `areas` have a row per center, in the order of their ids.

    Attributes
    ----------
    areas : array (g, bytes)
        The geometry bits that most centers of each area have.
    ids : array (u,)
    area : array (u,)
        The position of the center's area; its number in the database is one more.
    bits : array (u, bytes)
        The geometry bits that most rows at home in the center had when it was made.
    lengths, versions, stale : arrays (u,)
        Of its list: members, the version that last encoded it, the share of bits flipped since.
    checked : array (u,)
        The version that last looked whether the members of the list are at home in it; 0 where that is due.
    tried : array (u,)
        The length at which splitting the list was tried in vain.
    sample_keys, sample_codes, sampled : arrays (u, SAMPLE), (u, SAMPLE, bytes), (u,)
        Some members with their codes as stored; only the first `sampled[i]` of them are filled.
    """

    areas: CodeArray
    ids: IntArray
    area: IntArray
    bits: CodeArray
    lengths: IntArray
    versions: IntArray
    stale: npt.NDArray[np.float32]
    checked: IntArray
    tried: IntArray
    sample_keys: KeyArray
    sample_codes: CodeArray
    sampled: IntArray

    shared = frozenset({"areas"})

    def find(self, ids: npt.NDArray[Any]) -> IntArray:
        """Positions of centers by id, -1 where there is none."""
        if len(self) == 0:
            return np.full(len(ids), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[at] == ids, at, -1).astype(np.int64)

    def homes(self, bits: CodeArray, layout: Layout, quick: bool = False) -> IntArray:
        """The home of each row, given by its geometry bits, as a position: see `clustering.find_homes`."""
        if len(bits) == 0:
            return np.zeros(0, dtype=np.int64)
        return clustering.find_homes(bits, self.levels, layout, quick=quick)

    @property
    def levels(self) -> clustering.BitLevels:
        return clustering.BitLevels(self.areas, self.bits, self.area)

    @property
    def staleness(self) -> float:
        """The share of flipped bits in all lists."""
        total = int(self.lengths.sum())
        return float((self.stale * self.lengths).sum() / total) if total else 0.0

    def with_(self, **changes: Any) -> Centers:
        return replace(self, **changes)


def make_centers(index: IndexRow, first_id: int, levels: clustering.BitLevels, version: int) -> Centers:
    """New centers with empty lists."""
    count = len(levels.centers)
    return Centers(
        areas=levels.areas,
        ids=np.arange(first_id, first_id + count, dtype=np.int64),
        area=np.asarray(levels.area_of, dtype=np.int64),
        bits=levels.centers,
        lengths=np.zeros(count, dtype=np.int64),
        versions=np.full(count, version, dtype=np.int64),
        stale=np.zeros(count, dtype=np.float32),
        checked=np.full(count, version, dtype=np.int64),
        tried=np.zeros(count, dtype=np.int64),
        sample_keys=np.zeros((count, SAMPLE), dtype=index.keys.dtype),
        sample_codes=np.zeros((count, SAMPLE, width(index.bits)), dtype=np.uint8),
        sampled=np.zeros(count, dtype=np.int64),
    )


def no_centers(index: IndexRow) -> Centers:
    bits = np.zeros((0, index.geometry_column.packed), dtype=np.uint8)
    return make_centers(index, 1, clustering.BitLevels(bits, bits, np.zeros(0, dtype=np.int64)), 0)


# -- reading -------------------------------------------------------------------------------------------------


def read_centers(session: Session, index: IndexRow) -> Centers:
    """All centers, inside the caller's snapshot."""
    number, listed, packed = session.read_all(AREAS, [INT4, Array(INT4), Array(index.geometry_column)])
    ids, lengths, versions, stale, checked = session.read_all(CENTERS, [INT4, INT4, INT8, FLOAT4, INT8])
    sample_ids, tried, members, codes = session.read_all(
        SAMPLES, [INT4, INT4, Array(index.keys.column), Array(index.code_column)]
    )
    if len(ids) == len(sample_ids) == 0:
        return no_centers(index)
    within, entries, bits = np.repeat(number, listed.lengths), listed.values, packed.values
    root = within == 0
    areas, order = bits[root], np.argsort(entries[~root], kind="stable")
    area = within[~root][order].astype(np.int64) - 1
    known = np.array_equal(entries[root], np.arange(1, len(areas) + 1)) and area.max(initial=0) < len(areas)
    if not (known and np.array_equal(ids, sample_ids) and np.array_equal(ids, entries[~root][order])):
        raise StateError(
            f"the tables of index {index.name!r} do not name the same centers: "
            f"run foh-pg build {session.names['name']} --again"
        )
    sample_keys, sample_codes = _pad(index, members, codes)
    return Centers(
        areas=areas,
        ids=ids.astype(np.int64),
        area=area,
        bits=bits[~root][order],
        lengths=lengths.astype(np.int64),
        versions=versions,
        stale=stale,
        checked=checked,
        tried=tried.astype(np.int64),
        sample_keys=sample_keys,
        sample_codes=sample_codes,
        sampled=members.lengths,
    )


def _pad(index: IndexRow, members: Ragged, codes: Ragged) -> tuple[KeyArray, CodeArray]:
    keys = np.zeros((members.rows, SAMPLE), dtype=index.keys.dtype)
    padded = np.zeros((members.rows, SAMPLE, width(index.bits)), dtype=np.uint8)
    row = np.repeat(np.arange(members.rows), members.lengths)
    rank = np.arange(len(row)) - np.repeat(members.bounds[:-1], members.lengths)
    keys[row, rank] = members.values
    padded[row, rank] = codes.values
    return keys, padded


# -- samples -------------------------------------------------------------------------------------------------


def fill_samples(
    rng: np.random.Generator,
    sampled: IntArray,
    sample_keys: KeyArray,
    sample_codes: CodeArray,
    centers: IntArray,
    keys: KeyArray,
    codes: CodeArray,
) -> IntArray:
    """Fill samples up, in place, with some of the entries that join; return how many members each has now.

    `centers`: the position of the center that each entry joins.
    """
    order = rng.permutation(len(centers))
    order = order[np.argsort(centers[order], kind="stable")]
    joined = centers[order]
    begins = np.flatnonzero(np.diff(joined, prepend=-1))
    rank = np.arange(len(joined)) - np.repeat(begins, np.diff(np.append(begins, len(joined))))
    slot = sampled[joined] + rank
    fits = slot < SAMPLE
    sample_keys[joined[fits], slot[fits]] = keys[order[fits]]
    sample_codes[joined[fits], slot[fits]] = codes[order[fits]]
    return np.asarray(np.minimum(SAMPLE, sampled + np.bincount(joined, minlength=len(sampled))))


# -- writing -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CenterChange:
    """What differs between two states of the centers."""

    # Ids of centers that are gone.
    gone: IntArray
    # Positions of the centers that are new, and of those whose figures or samples changed.
    added: IntArray
    counted: IntArray
    samples: IntArray
    # Positions of the areas whose centers changed, before and after.
    left: IntArray
    joined: IntArray


def compare_centers(before: Centers, after: Centers) -> CenterChange:
    """What is new in `after`, or not as it was."""
    at = before.find(after.ids)
    gone = after.find(before.ids) < 0
    known, added = np.flatnonzero(at >= 0), np.flatnonzero(at < 0)
    old, new = before.take(at[known]), after.take(known)
    moved = (old.bits != new.bits).any(axis=1) | (old.area != new.area)
    counted = (
        (old.lengths != new.lengths)
        | (old.versions != new.versions)
        | (old.stale != new.stale)
        | (old.checked != new.checked)
    )
    within = np.arange(SAMPLE) < new.sampled[:, None]
    same_sample = (
        (old.tried == new.tried)
        & (old.sampled == new.sampled)
        & ((old.sample_keys == new.sample_keys) | ~within).all(axis=1)
        & ((old.sample_codes == new.sample_codes).all(axis=2) | ~within).all(axis=1)
    )
    return CenterChange(
        before.ids[gone],
        added,
        known[counted],
        np.sort(np.concatenate([added, known[~same_sample]])),
        np.unique(np.concatenate([before.area[gone], old.area[moved]])),
        np.unique(np.concatenate([after.area[added], new.area[moved]])),
    )


def write_centers(session: Session, index: IndexRow, before: Centers, after: Centers) -> None:
    """Bring the tables of centers from `before` to `after`, touching only what differs."""
    change = compare_centers(before, after)
    _write_areas(session, index, before, after, np.union1d(change.left, change.joined))
    if len(change.gone):
        session.execute("DELETE FROM {center} WHERE center = ANY (%(ids)s)", {"ids": change.gone.tolist()})
    samples = np.concatenate([change.gone, after.ids[change.samples]]).tolist()
    if len(samples) and len(before):
        session.execute("DELETE FROM {sample} WHERE center = ANY (%(ids)s)", {"ids": samples})
    _copy_centers(session, after.take(change.added))
    _count_centers(session, after.take(change.counted))
    _copy_samples(session, index, after.take(change.samples))


def replace_centers(session: Session, index: IndexRow, after: Centers) -> None:
    """Write all centers in place of those that are there, whatever these are."""
    session.execute("DELETE FROM {area}")
    session.execute("DELETE FROM {center}")
    session.execute("DELETE FROM {sample}")
    write_centers(session, index, no_centers(index), after)


def _write_areas(
    session: Session, index: IndexRow, before: Centers, after: Centers, changed: IntArray
) -> None:
    """Replace the areas whose centers changed, and the list of areas where these changed themselves."""
    numbers = changed + 1
    if not np.array_equal(before.areas, after.areas):
        numbers = np.append(numbers, 0)
    if len(numbers) == 0:
        return
    session.execute("DELETE FROM {area} WHERE area = ANY (%(numbers)s)", {"numbers": numbers.tolist()})
    inside = np.flatnonzero(np.isin(after.area, changed))
    area, ids, bits = after.area[inside] + 1, after.ids[inside], after.bits[inside]
    if 0 in numbers:
        count = len(after.areas)
        area = np.concatenate([np.zeros(count, dtype=np.int64), area])
        ids = np.concatenate([np.arange(1, count + 1), ids])
        bits = np.concatenate([after.areas, bits])
    order = np.lexsort((ids, area))
    area, ids, bits = area[order], ids[order], bits[order]
    size = 4 + bit_bytes(index.geometry_column.bits)
    parts = page_of(area, np.full(len(ids), size, dtype=np.int64))
    begins = np.flatnonzero(np.diff(pairs_of(area, parts), prepend=-1))
    bounds = np.append(begins, len(ids))
    session.copy_in(
        "area",
        ["area", "part", "ids", "geometry"],
        [INT4, INT4, Array(INT4), Array(index.geometry_column)],
        [area[begins], parts[begins], Ragged(ids, bounds), Ragged(bits, bounds)],
    )


def _copy_centers(session: Session, centers: Centers) -> None:
    session.copy_in(
        "center",
        ["center", "length", "version", "stale", "checked"],
        [INT4, INT4, INT8, FLOAT4, INT8],
        [centers.ids, centers.lengths, centers.versions, centers.stale, centers.checked],
    )


def _count_centers(session: Session, centers: Centers) -> None:
    if len(centers):
        values = {
            "ids": centers.ids.tolist(),
            "lengths": centers.lengths.tolist(),
            "versions": centers.versions.tolist(),
            "stale": centers.stale.astype(np.float64).tolist(),
            "checked": centers.checked.tolist(),
        }
        session.execute(COUNT, values)


def _copy_samples(session: Session, index: IndexRow, centers: Centers) -> None:
    keys = index.keys.column
    within = np.arange(SAMPLE) < centers.sampled[:, None]
    bounds = np.concatenate([[0], np.cumsum(centers.sampled)])
    session.copy_in(
        "sample",
        ["center", "tried", "ids", "codes"],
        [INT4, INT4, Array(keys), Array(index.code_column)],
        [
            centers.ids,
            centers.tried,
            Ragged(centers.sample_keys[within], bounds),
            Ragged(centers.sample_codes[within], bounds),
        ],
    )
