"""Centers of an index as an updater sees them: foh.<index>_area, _center and _sample side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import width
from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.errors import StateError
from foh_pg.postgres.binary_copy import FLOAT4, INT4, INT8, Array
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model import Vectors
from foh_pg.tables.session import Session

# Members of a list that show how stale it is.
SAMPLE = 16

AREAS = "SELECT a.area, a.embedding FROM {area} a ORDER BY a.area"
CENTERS = """
SELECT c.center, c.area, c.embedding, c.length, c.version, c.stale FROM {center} c ORDER BY c.center
"""
SAMPLES = "SELECT t.center, t.tried, t.ids, t.codes FROM {sample} t ORDER BY t.center"
COUNT = """
UPDATE {center} c SET length = u.length, version = u.version, stale = u.stale
FROM ROWS FROM (pg_catalog.unnest(%(ids)s::int[]), pg_catalog.unnest(%(lengths)s::int[]),
                pg_catalog.unnest(%(versions)s::bigint[]), pg_catalog.unnest(%(stale)s::real[]))
     AS u (center, length, version, stale)
WHERE c.center = u.center
"""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Centers(SideBySide):
    """All arrays but `areas` have a row per center, in the order of their ids.

    Attributes
    ----------
    areas : array (g, d)
    ids : array (u,)
    area : array (u,)
        The position of the center's area, which is also its number in the database.
    rows : array (u, d)
        The center itself: a mean of rows, of length one for cosine.
    lengths, versions, stale : arrays (u,)
        Of its list: members, the version that last encoded it, the share of bits flipped since.
    tried : array (u,)
        The length at which splitting the list was tried in vain.
    sample_keys, sample_codes, sampled : arrays (u, SAMPLE), (u, SAMPLE, bytes), (u,)
        Some members with their codes as stored; only the first `sampled[i]` of them are filled.
    """

    areas: Vectors
    ids: IntArray
    area: IntArray
    rows: Vectors
    lengths: IntArray
    versions: IntArray
    stale: npt.NDArray[np.float32]
    tried: IntArray
    sample_keys: KeyArray
    sample_codes: npt.NDArray[np.uint8]
    sampled: IntArray

    shared = frozenset({"areas"})

    def find(self, ids: npt.NDArray[Any]) -> IntArray:
        """Positions of centers by id, -1 where there is none."""
        if len(self) == 0:
            return np.full(len(ids), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[at] == ids, at, -1).astype(np.int64)

    def homes(self, index: IndexRow, rows: Vectors) -> IntArray:
        """The nearest centers of rows, as positions: (n, homes)."""
        homes = max(1, int(index.options["homes"]))
        if len(rows) == 0:
            return np.zeros((0, homes), dtype=np.int64)
        return clustering.find_homes(
            rows, self.areas, self.rows, self.area, homes=homes, metric=index.distance
        )

    def with_(self, **changes: Any) -> Centers:
        return replace(self, **changes)


def make_centers(
    index: IndexRow, first_id: int, areas: Vectors, area: IntArray, rows: Vectors, version: int
) -> Centers:
    """New centers with empty lists."""
    count = len(rows)
    return Centers(
        areas=stored_rows(index, areas),
        ids=np.arange(first_id, first_id + count, dtype=np.int64),
        area=np.asarray(area, dtype=np.int64),
        rows=stored_rows(index, rows),
        lengths=np.zeros(count, dtype=np.int64),
        versions=np.full(count, version, dtype=np.int64),
        stale=np.zeros(count, dtype=np.float32),
        tried=np.zeros(count, dtype=np.int64),
        sample_keys=np.zeros((count, SAMPLE), dtype=index.keys.dtype),
        sample_codes=np.zeros((count, SAMPLE, width(index.bits)), dtype=np.uint8),
        sampled=np.zeros(count, dtype=np.int64),
    )


def no_centers(index: IndexRow) -> Centers:
    rows = np.zeros((0, index.dimensions), dtype=np.float32)
    return make_centers(index, 1, rows, np.zeros(0, dtype=np.int64), rows, 0)


def stored_rows(index: IndexRow, rows: Vectors) -> Vectors:
    """Embeddings of centers as the database will hold them, so that memory and database agree."""
    if index.distance != "cosine":
        return np.asarray(rows, dtype=np.float32)
    half: Vectors = clustering.unit(np.asarray(rows, dtype=np.float32)).astype(np.float16).astype(np.float32)
    return half


# -- reading -------------------------------------------------------------------------------------------------


def read_centers(session: Session, index: IndexRow) -> Centers:
    """All centers, inside the caller's snapshot."""
    areas = [*session.copy_out(AREAS, [INT4, index.center_column])]
    found = [*session.copy_out(CENTERS, [INT4, INT4, index.center_column, INT4, INT8, FLOAT4])]
    more = [*session.copy_out(SAMPLES, [INT4, INT4, Array(index.keys.column), Array(index.code_column)])]
    if not found and not more:
        return no_centers(index)
    ids, area, rows, lengths, versions, stale = (np.concatenate(parts) for parts in zip(*found, strict=True))
    numbers = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in areas)])
    sample_ids = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in more)])
    known = np.array_equal(numbers, np.arange(len(numbers))) and area.max(initial=0) < len(numbers)
    if not known or not np.array_equal(ids, sample_ids):
        raise StateError(
            f"the centers of index {index.name!r} and what is known of them differ: "
            f"run foh-pg build {session.names['name']} --again"
        )
    padded = [_pad(index, members, codes) for *_, members, codes in more]
    return Centers(
        areas=np.concatenate([part[1] for part in areas]),
        ids=ids.astype(np.int64),
        area=area.astype(np.int64),
        rows=rows,
        lengths=lengths.astype(np.int64),
        versions=versions,
        stale=stale,
        tried=np.concatenate([part[1] for part in more]).astype(np.int64),
        sample_keys=np.concatenate([part[0] for part in padded]),
        sample_codes=np.concatenate([part[1] for part in padded]),
        sampled=np.concatenate([part[2].lengths for part in more]),
    )


def _pad(index: IndexRow, members: Ragged, codes: Ragged) -> tuple[KeyArray, npt.NDArray[np.uint8]]:
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
    sample_codes: npt.NDArray[np.uint8],
    centers: IntArray,
    keys: KeyArray,
    codes: npt.NDArray[np.uint8],
) -> IntArray:
    """Fill samples up, in place, with some of the entries that join; return how many members each has now.

    Parameters
    ----------
    centers : array (n,)
        The position of the center that each entry joins.
    """
    order = rng.permutation(len(centers))
    order = order[np.argsort(centers[order], kind="stable")]
    joined = centers[order]
    begins = np.flatnonzero(np.diff(joined, prepend=-1))
    rank = np.arange(len(joined)) - np.repeat(begins, np.diff(np.append(begins, len(joined))))
    place = sampled[joined] + rank
    fits = place < SAMPLE
    sample_keys[joined[fits], place[fits]] = keys[order[fits]]
    sample_codes[joined[fits], place[fits]] = codes[order[fits]]
    return np.asarray(np.minimum(SAMPLE, sampled + np.bincount(joined, minlength=len(sampled))))


# -- writing -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CenterChange:
    """Ids of centers to delete; positions of those to write, and of those whose figures or samples change."""

    gone: IntArray
    written: IntArray
    counted: IntArray
    samples: IntArray


def compare_centers(before: Centers, after: Centers) -> CenterChange:
    """What is new in `after`, or not as it was."""
    at = before.find(after.ids)
    known, added = np.flatnonzero(at >= 0), np.flatnonzero(at < 0)
    old, new = before.take(at[known]), after.take(known)
    moved = (old.rows != new.rows).any(axis=1) | (old.area != new.area)
    counted = (old.lengths != new.lengths) | (old.versions != new.versions) | (old.stale != new.stale)
    within = np.arange(SAMPLE) < new.sampled[:, None]
    same_sample = (
        (old.tried == new.tried)
        & (old.sampled == new.sampled)
        & ((old.sample_keys == new.sample_keys) | ~within).all(axis=1)
        & ((old.sample_codes == new.sample_codes).all(axis=2) | ~within).all(axis=1)
    )
    return CenterChange(
        before.ids[after.find(before.ids) < 0],
        np.sort(np.concatenate([added, known[moved]])),
        known[counted & ~moved],
        np.sort(np.concatenate([added, known[~same_sample]])),
    )


def write_centers(session: Session, index: IndexRow, before: Centers, after: Centers) -> None:
    """Bring the tables of centers from `before` to `after`, touching only what differs."""
    change = compare_centers(before, after)
    _write_areas(session, index, before, after)
    for table, rows in (("center", change.written), ("sample", change.samples)):
        ids = np.concatenate([change.gone, after.ids[rows]]).tolist()
        if len(ids) and len(before):
            if table == "center":
                session.execute("DELETE FROM {center} WHERE center = ANY (%(ids)s)", {"ids": ids})
            else:
                session.execute("DELETE FROM {sample} WHERE center = ANY (%(ids)s)", {"ids": ids})
    _copy_centers(session, index, after.take(change.written))
    _count_centers(session, after.take(change.counted))
    _copy_samples(session, index, after.take(change.samples))


def _write_areas(session: Session, index: IndexRow, before: Centers, after: Centers) -> None:
    if np.array_equal(before.areas, after.areas):
        return
    session.execute("DELETE FROM {area}")
    columns = [INT4, index.center_column]
    session.copy_in("area", ["area", "embedding"], columns, [np.arange(len(after.areas)), after.areas])


def _copy_centers(session: Session, index: IndexRow, centers: Centers) -> None:
    session.copy_in(
        "center",
        ["center", "area", "embedding", "length", "version", "stale"],
        [INT4, INT4, index.center_column, INT4, INT8, FLOAT4],
        [
            centers.ids,
            centers.area,
            centers.rows,
            centers.lengths,
            centers.versions,
            centers.stale,
        ],
    )


def _count_centers(session: Session, centers: Centers) -> None:
    if len(centers):
        values = {
            "ids": centers.ids.tolist(),
            "lengths": centers.lengths.tolist(),
            "versions": centers.versions.tolist(),
            "stale": centers.stale.astype(np.float64).tolist(),
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
